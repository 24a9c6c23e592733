/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - the quorlock command: global options and the table of verbs */
#include <quorlock/quorlock.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "args.h"
#include "cli.h"
#include "hide.h"
#include "say.h"
#include "signals.h"
#include "sources.h"

struct verb {
    const char *name;
    enum args_place place;
    int (*run)(const struct settings *);
    const char *synopsis; /* behind "quorlock [--nodes URI,URI,...]" */
    const char *summary;
    const char *help;
};

static const struct verb verbs[] = {
    {"run", ARGS_RUN, verb_run, "run [OPTIONS] KEY... -- CMD ARGS...", "run a command while holding a lock",
     "Takes the lock KEY, runs CMD, renews the lock while CMD runs, releases it. Of several keys, 64 at most,\n"
     "it takes all or none, in whatever order they are named. A key behind --shared is locked together with\n"
     "others that lock it so. With --permits K it takes one of the K permits of the name KEY. CMD gets\n"
     "QUORLOCK_KEY (the first), QUORLOCK_KEYS (all, one a line), QUORLOCK_OWNER, with --permits QUORLOCK_SLOT (0\n"
     "to K-1) and, with --fence, QUORLOCK_FENCE: a number that rises with every grant (with --permits: of that\n"
     "slot), by which what CMD writes to can refuse a late writer. When the lock is lost, CMD and its process\n"
     "group are ended before another client can get it. Signals are passed on to CMD; during the wait they\n"
     "end the wait.\n"
     "\n"
     "Exit status: that of CMD, 128+N if signal N ended it; 1 (or -E) somebody else holds the lock; 64 usage;\n"
     "69 too few nodes can vote: try again; 71 no memory or no process; 74 the metrics file could not be\n"
     "written; 75 the lock was lost while CMD ran; 78 the nodes refuse the password, rights, settings or\n"
     "key: trying again does not help; 126 CMD is not executable; 127 CMD is not there.\n"},
    {"elect", ARGS_ELECT, verb_elect, "elect [OPTIONS] NAME -- CMD ARGS...", "run a command while leading",
     "Stands for the election NAME, and runs CMD while it leads. Whoever leads holds the lock NAME; the others\n"
     "wait. CMD gets QUORLOCK_KEY (NAME) and QUORLOCK_TERM: a number that rises with every leader, by which what\n"
     "CMD writes to can refuse a late writer. When it is deposed, CMD and its process group are ended before\n"
     "another one can lead, and it stands again. When CMD ends by itself it resigns, and ends too; with\n"
     "--restart it pauses for a second, longer each time that CMD ran for less than 10 s and 30 s at most, and\n"
     "stands again. Signals are passed on to CMD; while it does not lead they end the candidacy.\n"
     "\n"
     "Exit status: that of CMD, 128+N if signal N ended it or the wait; 64 usage; 71 no memory or no process;\n"
     "74 the metrics file could not be written; 75 deposed while CMD was ending; 78 the nodes refuse the\n"
     "password, rights, settings or name; 126 CMD is not executable; 127 CMD is not there.\n"},
    {"leader", ARGS_LEADER, verb_leader, "leader [OPTIONS] NAME", "show who leads, and follow it",
     "Asks the nodes who leads the election NAME, and prints what the leader advertises, and its term. With\n"
     "--wait it waits until somebody leads; with --follow it goes on, and prints a line whenever that changes.\n"
     "Terms never fall. Changes nothing.\n"
     "\n"
     "Exit status: 0 somebody leads; 1 nobody does; 64 usage; 69 too few nodes answer; 74 the output could not\n"
     "be written; 128+N ended by signal N, 141 when its reader is gone.\n"},
    {"bootstrap", ARGS_BOOTSTRAP, verb_bootstrap, "bootstrap [OPTIONS]", "declare that no lock is held on the nodes",
     "Each node keeps a guard, by which clients see that it may have lost its memory. At the first contact\n"
     "with nodes that have none, clients wait one max lease, for locks may be held. This declares that no "
     "lock\n"
     "is held on any of the nodes and skips that wait, or ends it. Every node must be reachable, and each\n"
     "without a guard or in the quarantine of its first contact. It also ends a quarantine for a client with\n"
     "too long a max lease, and declares then that no such client holds a lock. Else nothing is written: a\n"
     "node that lost its guard among others may have lost locks. With --reconfigure the guards are written\n"
     "anew, with a quarantine; stop servers that leave the set before. To a shorter max lease it ends when the\n"
     "quarantine is over: give clients the shorter one then, and not before. It ends the locks that are held: it\n"
     "asks first, on a terminal, and needs --yes elsewhere.\n"
     "\n"
     "Exit status: 0 done; 1 a node has a guard already (with --if-needed: another one than this would write),\n"
     "or one that cannot be read, or the answer was not yes; 64 usage, or no one max lease to keep; 69 not every\n"
     "node answered or did it (the report lists what was written all the same).\n"},
    {"inspect", ARGS_INSPECT, verb_inspect, "inspect [OPTIONS] KEY...", "show the holder of a lock, node by node",
     "Asks every node which owner holds KEY and for how long; says whether one is on a quorum. Changes\n"
     "nothing. Of several keys it asks for one after the other, each on its own.\n"
     "\n"
     "Exit status: 0 a quorum of nodes answered, whether the lock is held or free (with --quiet: 0 held, 1\n"
     "free); 64 usage; 69 too few answered; 74 the report could not be written.\n"},
    {"watch", ARGS_WATCH, verb_watch, "watch [OPTIONS] KEY...", "show the holders of locks as they change",
     "Asks every node again and again which owner holds KEY. On a terminal it shows a table: the holder, on\n"
     "how many nodes, what is left of its lease on each, which nodes are down or quarantined, and how many\n"
     "clients wait; q ends it. Elsewhere, and where TERM is dumb, it writes a line when something changes.\n"
     "Writes nothing on the nodes, and needs only the rights to read.\n"
     "\n"
     "Exit status: 0 ended by q, or by --count when a quorum of nodes answered for every key; 64 usage; 69 too\n"
     "few answered in the last round of --count; 71 no memory; 74 the output could not be written; 128+N ended\n"
     "by signal N, 141 when its reader is gone.\n"},
    {"break", ARGS_BREAK, verb_break, "break [OPTIONS] KEY...", "release a lock by force, whatever its owner",
     "Prints the owner of KEY, then deletes it on every node. The holder notices at its next renewal; what it "
     "did\n"
     "until then is not undone. Several keys are all printed first. A lock of several keys ends with one of\n"
     "them: when its holder notices, it releases the others.\n"
     "\n"
     "Exit status: 0 a quorum of nodes answered; 64 usage; 69 too few answered; 74 the report could not be\n"
     "written (where the first print failed, nothing is broken).\n"},
    {"doctor", ARGS_DOCTOR, verb_doctor, "doctor [OPTIONS] [--acl USER KEY...]",
     "say what could make a lock on the nodes unsafe",
     "Asks every node what could make a lock there unsafe, or impossible: its role, memory policy,\n"
     "persistence, guard, clock, rights, connections. Says how to mend what it finds. Writes nothing there.\n"
     "With --acl it prints the rights that locks need instead.\n"
     "\n"
     "Exit status: 0 sound; 1 warnings; 2 unsafe, or fewer than a quorum of nodes can vote now; 64 usage; 74\n"
     "the report could not be written.\n"},
    {"bench", ARGS_BENCH, verb_bench, "bench [OPTIONS]", "measure what locks cost on the nodes",
     "Takes and gives back locks as fast as it can, each under a key of its own that no other program has, so\n"
     "many at a time. Short slices of this alternate with slices of a raw baseline, which sends SET and a\n"
     "compare-and-delete to all nodes and has no lock's logic. Prints both, and their ratios. It is a load for\n"
     "the nodes. At the end, also when a signal ends it, it deletes its keys.\n"
     "\n"
     "Exit status: 0 measured; 64 usage; 69 too few nodes can vote; 71 no memory; 74 the report could not be\n"
     "written; 78 the nodes refuse the password, rights or settings; 128+N ended by signal N.\n"},
    {"config", ARGS_CONFIG, verb_config, "config [OPTIONS]", "show what is in force, and where it comes from",
     "Prints each value that options, environment, configuration files or defaults give, and which of them did.\n"
     "Takes the options that a file may have. Asks no node, shows no password, and says what is wrong in the files.\n"
     "\n"
     "Exit status: 0 the files are good; 64 they are not, or usage; 74 the report could not be written.\n"},
};
_Static_assert(sizeof(verbs) / sizeof(verbs[0]) == N_VERBS, "each verb of VERB_MAP has its row");

static int print_help(void)
{
    struct text text = {0};

    text_format(&text, "quorlock - one lock on N independent Redis servers\n\n"
                       "usage: quorlock [--nodes URI,URI,...] VERB ...\n\nVerbs:\n");
    for (size_t i = 0; i < N_VERBS; i++) {
        size_t start = text.length;

        text_format(&text, "  %s", verbs[i].synopsis);
        text_pad(&text, start, 40);
        text_format(&text, "%s\n", verbs[i].summary);
    }
    text_format(&text, "\nOptions:\n");
    args_help(&text, ARGS_GLOBAL);
    text_format(&text,
                "\nDurations are written 250ms, 30s, 2m. See quorlock VERB --help for each verb, and man quorlock.\n");
    return put(&text);
}

static int print_verb_help(const struct verb *verb)
{
    struct text text = {0};

    text_format(&text, "usage: quorlock [--nodes URI,URI,...] %s\n\n%s\nOptions:\n", verb->synopsis, verb->help);
    args_help(&text, verb->place);
    return put(&text);
}

static int run_verb(struct settings *settings, const struct verb *verb, char **words, int count)
{
    bool takes_keys = (verb->place & ARGS_REPORTS) != 0;
    bool may_take_keys;
    int next = 0;
    int status = args_parse(settings, verb->place, words, count, &next);

    if (status != 0) {
        say("usage: quorlock %s", verb->synopsis);
        return status;
    }
    if (settings->help) return print_verb_help(verb);
    status = sources_settle(settings, verb->place);
    if (status != 0) return status;
    may_take_keys = (verb->place & ARGS_COMMANDS) != 0 || (verb->place == ARGS_DOCTOR && settings->acl != NULL);
    if (!may_take_keys && (settings->n_words > 0) != takes_keys) {
        say("%s takes %s: quorlock %s", verb->name, takes_keys ? "keys" : "no key", verb->synopsis);
        return EXIT_USAGE;
    }
    /* The other verbs must not write a guard, nor quarantine a node: bootstrap writes its own. */
    if ((verb->place & ARGS_LOCKING) == 0) settings->guard = QUORLOCK_GUARD_OFF;
    return verb->run(settings);
}

/* refuse_verb - says which verbs there are; word NULL: none was given. */
static int refuse_verb(const char *word)
{
#define VERB_NAME(unused, NAME, name, traits) #name,
    static const char *const names[] = {VERB_MAP(VERB_NAME, )};
    struct text text = {0};

    if (word != NULL) text_format(&text, "\"%s\" is ", word);
    text_format(&text, "no verb: give ");
    for (size_t i = 0; i < N_VERBS; i++)
        text_format(&text, "%s%s", i == 0 ? "" : i + 1 < N_VERBS ? ", " : " or ", names[i]);
    text_format(&text, "; see quorlock --help");
    say_text(LOG_ERR, &text);
    return EXIT_USAGE;
}

static int run_words(char **words, int count)
{
    struct settings settings = {.wait_ms = QUORLOCK_WAIT_FOREVER,
                                .held_status = EXIT_HELD,
                                .in_flight = BENCH_IN_FLIGHT,
                                .seconds = BENCH_SECONDS};
    struct text version = {0};
    int next = 0;
    int status = args_parse(&settings, ARGS_GLOBAL, words, count, &next);

    if (status != 0) return status;
    if (settings.help) return print_help();
    if (settings.version) {
        text_format(&version, "quorlock %s\n", quorlock_version());
        return put(&version);
    }
    if (next >= count || strcmp(words[next], "--") == 0) return refuse_verb(NULL);
    for (size_t i = 0; i < N_VERBS; i++)
        if (strcmp(words[next], verbs[i].name) == 0) return run_verb(&settings, &verbs[i], words + next, count - next);
    if (strpbrk(words[next], ":@") == NULL) return refuse_verb(words[next]);
    say("an address is no verb: write --nodes URI,URI,... before the verb; see quorlock --help");
    return EXIT_USAGE;
}

/* fill_descriptors - the next socket would take a standard descriptor that is closed, and messages would go to
 * a Redis server. */
static bool fill_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) continue;
        /* Opened so that its use fails as that of a closed one does. */
        if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    static char **words; /* copies, for passwords are taken out of argv */

    signals_ignore_pipe();
    words = calloc((size_t)argc + 1, sizeof(*words));
    if (words == NULL || !fill_descriptors()) return EXIT_SYSTEM;
    for (int i = 0; i < argc; i++) {
        words[i] = strdup(argv[i]);
        if (words[i] == NULL) return EXIT_SYSTEM;
    }
    hide_all(argv, argc);
    return run_words(words, argc);
}
