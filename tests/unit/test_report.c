/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_report.c - what ls and inspect say where too few nodes answer
 */
#include "admin/report.h"
#include "test.h"

TEST(rights_are_missing_where_those_that_do_not_refuse_are_too_few)
{
    static const struct {
        size_t refused, asked, needed;
        int status;
    } rows[] = {
        {0, 3, 2, QUORLOCK_ERR_NOQUORUM}, {1, 3, 2, QUORLOCK_ERR_NOQUORUM}, {2, 3, 2, QUORLOCK_ERR_AUTH},
        {3, 3, 2, QUORLOCK_ERR_AUTH},     {2, 5, 3, QUORLOCK_ERR_NOQUORUM}, {3, 5, 3, QUORLOCK_ERR_AUTH},
        {0, 1, 1, QUORLOCK_ERR_NOQUORUM}, {1, 1, 1, QUORLOCK_ERR_AUTH},     {1, 2, 2, QUORLOCK_ERR_AUTH},
        {0, 2, 2, QUORLOCK_ERR_NOQUORUM}, {1, 3, 3, QUORLOCK_ERR_AUTH},     {0, 3, 3, QUORLOCK_ERR_NOQUORUM},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        assert_int_equal(report_lack(rows[i].refused, rows[i].asked, rows[i].needed), rows[i].status);
    }
}

TEST(a_node_refuses_by_rights_or_login_alone)
{
    for (int fault = FAULT_NONE; fault < FAULTS; fault++) {
        assert_int_equal(report_refuses((enum fault)fault), fault == FAULT_AUTH || fault == FAULT_LOGIN);
    }
}
