/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_args.c - the command's arguments, its environment, and the texts that it prints
 *
 * Words are made of options, addresses with a secret, and any bytes. The parser always returns 0, or 64 after a
 * message; neither the message nor the words that ps shows contain a password.
 */
#include "feed.h"

#include "cli/args.h"
#include "cli/document.h"
#include "said.h"
#include "settings/duration.h"

#define WORDS_MAX 12
#define WORD_SIZE 200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
    char words[WORDS_MAX][WORD_SIZE];
    char *list[WORDS_MAX + 2]; /* behind the program's name, before a NULL */
    int n;
} fuzz;

static void make_word(struct feed *feed, char *word)
{
    static const char *const words[] = {
        "--nodes",
        "--nodes=",
        "--help",
        "-h",
        "--version",
        "-v",
        "--verbose",
        "--json",
        "--policy",
        "majority",
        "all",
        "--lease",
        "30s",
        "2m",
        "--max-lease=",
        "--wait",
        "forever",
        "0",
        "-n",
        "-E",
        "-E7",
        "--label",
        "--dialect=",
        "redisson",
        "--guard",
        "strict",
        "--fence",
        "--set-name",
        "--",
        "-",
        "key",
        "--reconfigure",
        "--in-flight",
        "--seconds=9",
        "--allow-eviction",
        "--node-timeout",
        "99999999999999999999s",
        "1ms",
        "255",
        "--nodes=,",
        "--no",
        "--re",
        "-nvE7",
        "--key",
        "--key=-k",
        "--nodes= a:1 , b:2,",
        "--set",
        "--config=/dev/null",
        "--fence=no",
        "--password",
    };
    uint8_t what = feed_byte(feed);
    uint8_t n = feed_byte(feed) % 24;

    word[0] = '\0';
    if (what < sizeof(words) / sizeof(words[0])) snprintf(word, WORD_SIZE, "%s", words[what]);
    if (what % 2 == 0 && what < 128) return;
    while (n-- > 0 && feed->left > 0 && strlen(word) + 16 < WORD_SIZE) feed_add(feed, word, WORD_SIZE);
}

/* Whether an address with a password is in the word. */
static bool holds_secret(const char *word)
{
    const char *address = strstr(word, "://");

    if (address == NULL || strstr(word, FEED_SECRET) == NULL) return false;
    while (address > word && address[-1] >= 'a' && address[-1] <= 'z') address--;
    return feed_is_secret(address);
}

static bool any_secret(void)
{
    for (int i = 0; i < fuzz.n; i++) {
        if (holds_secret(fuzz.words[i])) return true;
    }
    return false;
}

static bool any_other_secret(void)
{
    for (int i = 0; i < fuzz.n; i++) {
        if (strstr(fuzz.words[i], FEED_SECRET) != NULL && !holds_secret(fuzz.words[i])) return true;
    }
    return false;
}

static void check_said(int status, bool secret)
{
    CHECK(status == 0 || status == EXIT_USAGE);
    CHECK((status == 0) == (said.times == 0));
    if (secret && feed_shows_secret(said.text)) {
        fprintf(stderr, "said: %s\n", said.text);
        for (int i = 0; i < fuzz.n; i++) fprintf(stderr, "word: %s\n", fuzz.words[i]);
        abort();
    }
}

/* Nothing that a terminal obeys, and nothing that is no UTF-8, by a table of the test's own. */
static void check_safe(const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        unsigned char next = i + 1 < length ? (unsigned char)bytes[i + 1] : 0;
        unsigned char last = i + 2 < length ? (unsigned char)bytes[i + 2] : 0;

        CHECK(byte >= 0x20 && byte != 0x7f);
        CHECK(!(byte == 0xc2 && next < 0xa0));
        CHECK(!(byte == 0xd8 && next == 0x9c)); /* U+061C */
        CHECK(!(byte == 0xe2 && next == 0x80 && (last == 0x8e || last == 0x8f || (last >= 0xa8 && last <= 0xae))));
        CHECK(!(byte == 0xe2 && next == 0x81 && last >= 0xa6 && last <= 0xa9));
        CHECK(byte != 0xc0 && byte != 0xc1 && byte < 0xf5);
    }
}

static size_t allocations_left; /* of jansson's */

static void *allocate(size_t size)
{
    return allocations_left-- > 0 ? malloc(size) : NULL;
}

/* A string comes back from its JSON as it was, but for what is no UTF-8; out of memory is noticed. */
static void check_json(const char *string, size_t n_allocations)
{
    struct text json = {0}, valid = {0};
    json_t *list;

    json_set_alloc_funcs(allocate, free);
    allocations_left = n_allocations;
    list = json_array();
    document_append(&list, document_text(string));
    document_write(&json, list);
    json_set_alloc_funcs(malloc, free);
    list = json.failed ? NULL : json_loadb(json.bytes, json.length, 0, NULL);
    CHECK(json.failed == (allocations_left > n_allocations));
    if (!json.failed) {
        text_add_utf8(&valid, string, strlen(string) + 1);
        check_safe(json.bytes, json.length - 1);
        CHECK(strcmp(json_string_value(json_array_get(list, 0)), valid.bytes) == 0);
    }
    json_decref(list);
    text_clear(&json);
    text_clear(&valid);
}

static void check_texts(struct feed *feed)
{
    struct text safe = {0};
    char string[256];
    size_t length;
    const char *bytes = feed_text(feed, 255, &length);
    uint32_t ms = 77;
    const char *wrong;

    text_add_safe(&safe, bytes, length);
    CHECK(!safe.failed);
    check_safe(safe.bytes, safe.length);
    snprintf(string, sizeof(string), "%.*s", (int)length, bytes);
    for (size_t n = 0; n < 12; n++) check_json(string, n);
    check_json(string, SIZE_MAX / 2);
    wrong = duration_read(string, &ms);
    CHECK((wrong == NULL) || ms == 77);
    text_clear(&safe);
}

static void parse(struct feed *feed)
{
    enum args_place place = (enum args_place)(ARGS_GLOBAL << feed_byte(feed) % (1 + N_VERBS));
    struct sources sources = {0};
    struct settings settings = {.sources = &sources};
    struct text help = {0};
    bool secret = any_secret() && !any_other_secret();
    int next = -1;
    int status = args_parse(&settings, place, fuzz.list, fuzz.n + 1, &next);

    check_said(status, secret);
    if (status == 0) {
        CHECK(next >= 0 && next <= fuzz.n + 1 && settings.n_words <= (size_t)fuzz.n);
        CHECK(settings.held_status <= 255);
        said.times = 0;
        said.text[0] = '\0';
        check_said(args_settle(&settings, place), secret);
        if (said.times == 0) CHECK(settings.values.nodes != NULL && settings.values.nodes[0] != '\0');
    }
    sources_clear(&sources);
    args_help(&help, place);
    CHECK(help.length > 0 && !help.failed);
    text_clear(&help);
}

/* What ps shows of the words. In a word with two schemes it is unknown which part is a password. */
static void check_hidden(void)
{
    char *list[WORDS_MAX];

    for (int i = 0; i < fuzz.n; i++) list[i] = fuzz.words[i];
    args_hide(list, fuzz.n);
    for (int i = 0; i < fuzz.n && strcmp(list[i], "--") != 0; i++) {
        const char *at = strchr(list[i], '@');
        const char *scheme = strstr(list[i], "://");
        const char *secret = strstr(list[i], FEED_SECRET);

        CHECK(strlen(list[i]) < WORD_SIZE);
        if (at == NULL || scheme == NULL || strstr(scheme + 1, "://") != NULL) continue;
        CHECK(secret == NULL || secret > at || !holds_secret(list[i]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed feed = {data, size};
    uint8_t n = feed_byte(&feed) % (WORDS_MAX + 1);
    char program[] = "quorlock";

    memset(&fuzz, 0, sizeof(fuzz));
    memset(&said, 0, sizeof(said));
    fuzz.list[0] = program;
    while (fuzz.n < n && feed.left > 0) {
        make_word(&feed, fuzz.words[fuzz.n]);
        fuzz.list[fuzz.n + 1] = fuzz.words[fuzz.n];
        fuzz.n++;
    }
    setenv("QUORLOCK_CONFIG", "/dev/null", 1);
    unsetenv("QUORLOCK_NODES");
    unsetenv("QUORLOCK_MAX_LEASE");
    if (fuzz.n > 0 && feed_byte(&feed) % 4 == 0) {
        setenv("QUORLOCK_NODES", fuzz.words[0], 1);
        setenv("QUORLOCK_MAX_LEASE", fuzz.words[fuzz.n - 1], 1);
    }
    parse(&feed);
    check_hidden();
    check_texts(&feed);
    return 0;
}
