/* SPDX-License-Identifier: BSD-3-Clause */
/* test_dial.c - which of the addresses of a name is told when all of them failed */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "redis/link/dial.h"
#include "test.h"

#define REFUSED "Connection refused"
#define NO_NAME "hostname mismatch"

/* 127.0.0.1, and then ::1. */
static struct dial two_addresses(const struct uri *uri)
{
    const struct link_config config = {.uri = uri};
    const struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct dial dial;

    dial_init(&dial, NULL, &config, NULL, NULL);
    dial_blame(&dial, FAULT_UNREACHABLE, "no address");
    dial.addresses.n = 2;
    memcpy(&dial.addresses.at[0].storage, &v4, sizeof(v4));
    memcpy(&dial.addresses.at[1].storage, &v6, sizeof(v6));
    return dial;
}

static void expect(const enum fault *faults, enum fault fault, const char *why)
{
    const struct uri uri = {.kind = URI_NAME};
    struct dial dial = two_addresses(&uri);

    for (size_t i = 0; i < 2; i++) {
        dial.at = i + 1;
        dial_blame(&dial, faults[i], faults[i] == FAULT_AUTH ? NO_NAME : REFUSED);
    }
    assert_int_equal(dial.fault, fault);
    assert_string_equal(dial.why, why);
}

TEST(a_server_that_was_reached_is_told_before_one_that_is_not_there)
{
    expect((enum fault[]){FAULT_AUTH, FAULT_UNREACHABLE}, FAULT_AUTH, "connect to 127.0.0.1: " NO_NAME);
    expect((enum fault[]){FAULT_UNREACHABLE, FAULT_AUTH}, FAULT_AUTH, "connect to ::1: " NO_NAME);
}

TEST(else_it_is_the_last_one)
{
    expect((enum fault[]){FAULT_UNREACHABLE, FAULT_UNREACHABLE}, FAULT_UNREACHABLE, "connect to ::1: " REFUSED);
    expect((enum fault[]){FAULT_AUTH, FAULT_AUTH}, FAULT_AUTH, "connect to ::1: " NO_NAME);
}
