/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - the quorlock command: global options, and the table of verbs */
#include <quorlock/quorlock.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "args.h"
#include "cli.h"
#include "say.h"
#include "signals.h"

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
     "Acquires the lock KEY, runs CMD, renews the lock while CMD runs, and releases it. Several keys, 64 at\n"
     "most, are locked together or not at all; their order makes no difference. A key behind --shared may be\n"
     "held shared by others at the same time. With --permits K it takes one of the K permits of KEY.\n"
     "\n"
     "CMD gets QUORLOCK_KEY (the first key), QUORLOCK_KEYS (all keys, one a line) and QUORLOCK_OWNER; with\n"
     "--permits QUORLOCK_SLOT (0 to K-1); with --fence QUORLOCK_FENCE, a number that rises with every grant\n"
     "(with --permits: of that slot). The resource that CMD writes to can refuse a lower number than the\n"
     "highest it has seen, and so a late writer.\n"
     "\n"
     "If the lock is lost, CMD and its process group are ended before another client can get it. Signals go\n"
     "to CMD; before CMD runs they end the wait.\n"
     "\n"
     "Exit status: that of CMD, or 128+N if signal N ended it; 1 (or -E) somebody else holds the lock; 64\n"
     "usage; 69 too few nodes can vote: try again; 71 out of memory or processes; 74 the metrics file could not\n"
     "be written; 75 the lock was lost while CMD ran; 78 the nodes refuse the password, rights, settings or\n"
     "key: another attempt does not help; 126 CMD is not executable; 127 CMD does not exist.\n"},
    {"elect", ARGS_ELECT, verb_elect, "elect [OPTIONS] NAME -- CMD ARGS...", "run a command while leading",
     "Is a candidate of the election NAME, and runs CMD while it leads. The leader holds the lock NAME; other\n"
     "candidates wait. CMD gets QUORLOCK_KEY (NAME) and QUORLOCK_TERM, a number that rises with every leader.\n"
     "The resource that CMD writes to can refuse a lower number than the highest it has seen.\n"
     "\n"
     "If the candidate is deposed, CMD and its process group are ended before another one can lead, and the\n"
     "candidacy goes on. When CMD ends by itself, the candidate resigns, and quorlock ends. With --restart it\n"
     "pauses and is a candidate again: after a second, or up to 30 s if CMD keeps ending within 10 s. Signals\n"
     "go to CMD; while the candidate does not lead they end the candidacy.\n"
     "\n"
     "Exit status: that of CMD, or 128+N if signal N ended it or the wait; 64 usage; 71 out of memory or\n"
     "processes; 74 the metrics file could not be written; 75 deposed while CMD was ending; 78 the nodes\n"
     "refuse the password, rights, settings or name; 126 CMD is not executable; 127 CMD does not exist.\n"},
    {"acquire", ARGS_ACQUIRE, verb_acquire, "acquire [OPTIONS] KEY...", "take a lock for later commands",
     "Acquires the lock KEY, prints its owner token, with --fence also the fencing token, and ends. Nothing renews\n"
     "the lock: it ends with its lease, unless quorlock renew or quorlock release gets the token before. Several\n"
     "keys are locked together or not at all. Prefer quorlock run where one command can do the work.\n"
     "\n"
     "Exit status: 0 acquired; 1 (or -E) somebody else holds the lock; 64 usage; 69 too few nodes can vote: try\n"
     "again; 71 out of memory; 74 the token could not be written, and the lock was released; 75 its lease ended\n"
     "before; 78 the nodes refuse the password, rights, settings or key; 128+N ended by signal N.\n"},
    {"renew", ARGS_RENEW, verb_renew, "renew [OPTIONS] KEY... TOKEN", "renew a lock that acquire took",
     "Asks the nodes to extend the lock KEY, which has that owner token, by a new lease from now on. Only one\n"
     "process at a time may use the token.\n"
     "\n"
     "Exit status: 0 renewed; 64 usage; 69 too few nodes answered: the lock may still be held until its lease\n"
     "ends; 71 out of memory; 74 the output could not be written; 75 the lock was lost; 78 the nodes refuse the\n"
     "password, rights, settings or key; 128+N ended by signal N.\n"},
    {"release", ARGS_RELEASE, verb_release, "release [OPTIONS] KEY... TOKEN", "release a lock that acquire took",
     "Releases the lock KEY, which has that owner token, on every node. Another owner's lock is not touched.\n"
     "\n"
     "Exit status: 0 released; 64 usage; 69 too few nodes answered: the lock may be held until its lease ends; 71\n"
     "out of memory; 74 the output could not be written; 75 the lock was lost before; 78 the nodes refuse the\n"
     "password, rights, settings or key; 128+N ended by signal N.\n"},
    {"leader", ARGS_LEADER, verb_leader, "leader [OPTIONS] NAME", "show who leads, and follow it",
     "Asks the nodes who leads the election NAME, and prints the text that the leader advertises, and its term.\n"
     "With --wait it waits until somebody leads. With --follow it goes on, and prints a line at each change.\n"
     "Terms never fall. Nothing is written on the nodes.\n"
     "\n"
     "Exit status: 0 somebody leads; 1 nobody leads; 64 usage; 69 too few nodes answer; 74 the output could not\n"
     "be written; 128+N ended by signal N, 141 if the reader of the output has ended.\n"},
    {"bootstrap", ARGS_BOOTSTRAP, verb_bootstrap, "bootstrap [OPTIONS]", "declare that no lock is held on the nodes",
     "Each node has a guard, which shows clients whether the node may have lost its data. At the first contact\n"
     "with nodes that have no guard, clients wait one max lease, because locks may be held. This command\n"
     "declares that no lock is held on any node, and writes the guards, so that this wait is not needed or\n"
     "ends. Nothing is written unless every node can be reached, and has no guard or is in the quarantine of its\n"
     "first contact: in any other state a node may have lost locks. The command also ends the quarantine for a\n"
     "client with a longer max lease, and declares that no such client holds a lock.\n"
     "\n"
     "With --reconfigure it replaces the guards, and every node is quarantined. Stop servers that leave the set\n"
     "before. It ends locks that are held, so it asks for confirmation on a terminal, and needs --yes\n"
     "elsewhere. If the max lease becomes shorter, it ends when the quarantine is over; give clients the shorter\n"
     "max lease only then.\n"
     "\n"
     "Exit status: 0 done; 1 a node has a guard already (with --if-needed: one that differs), or one that cannot\n"
     "be read, or the answer was not yes; 64 usage, or the nodes have several max leases; 69 not every node\n"
     "answered or did it (the report lists what was written).\n"},
    {"inspect", ARGS_INSPECT, verb_inspect, "inspect [OPTIONS] KEY...", "show the holder of a lock, node by node",
     "Asks every node which owner holds KEY and for how long, and prints whether one owner is on a quorum of\n"
     "nodes. Nothing is written on the nodes. Several keys are asked for one after the other.\n"
     "\n"
     "Exit status: 0 a quorum of nodes answered, whether the lock is held or free (with --quiet: 0 held, 1\n"
     "free); 64 usage; 69 too few answered; 74 the report could not be written.\n"},
    {"ls", ARGS_LS, verb_ls, "ls [OPTIONS] [PATTERN]", "list the locks on the nodes",
     "Searches every node for locks whose keys match PATTERN, a glob as of Redis' SCAN (default: all), and prints\n"
     "for each its mode, its holder, the rest of its lease, and on how many nodes it is. Fewer nodes than a\n"
     "quorum are marked: such a lock is not held. Nothing is written on the nodes. They are searched in small\n"
     "steps, so a lock that is taken or released meanwhile may be missing or marked.\n"
     "\n"
     "Exit status: 0 a quorum of nodes answered; 64 usage; 69 too few answered; 71 out of memory; 74 the list\n"
     "could not be written; 78 the nodes refuse the password or the rights.\n"},
    {"watch", ARGS_WATCH, verb_watch, "watch [OPTIONS] KEY...", "show the holders of locks as they change",
     "Asks every node again and again which owner holds KEY. On a terminal it shows a table: the holder, the\n"
     "number of its nodes, the rest of its lease on each node, which nodes are down or quarantined, and how many\n"
     "clients wait; q ends it. Elsewhere, and if TERM is dumb, it writes a line at each change. Nothing is\n"
     "written on the nodes, and the rights to read are enough.\n"
     "\n"
     "Exit status: 0 ended by q, or by --count when a quorum of nodes answered for every key; 64 usage; 69 too\n"
     "few answered in the last round of --count; 71 out of memory; 74 the output could not be written; 128+N\n"
     "ended by signal N, 141 if the reader of the output has ended.\n"},
    {"break", ARGS_BREAK, verb_break, "break [OPTIONS] KEY...", "release a lock by force, whatever its owner",
     "Prints the owner of KEY, then deletes KEY on every node. The holder mostly notices that within a few round\n"
     "trips, and at its next renewal at the latest; its work until then is not undone. With several keys all\n"
     "owners are printed first. A lock on several keys ends with one of them: when its holder notices, it\n"
     "releases the others.\n"
     "\n"
     "Exit status: 0 a quorum of nodes answered; 1 the owner of --owner does not hold KEY; 64 usage; 69 too few\n"
     "answered; 74 the report could not be written (if the owner could not be printed, nothing was deleted).\n"},
    {"doctor", ARGS_DOCTOR, verb_doctor, "doctor [OPTIONS] [--acl USER KEY...]",
     "find what could make a lock on the nodes unsafe",
     "Asks every node what could make a lock unsafe or impossible: its role, memory policy, persistence, guard,\n"
     "clock, rights and connections. Prints its findings, each with a remedy. Nothing is written on the nodes.\n"
     "With --acl it asks no node, and prints the rights that locks need.\n"
     "\n"
     "Exit status: 0 sound; 1 warnings; 2 unsafe, or an outage: fewer than a quorum of nodes can vote\n"
     "now; 64 usage; 74\n"
     "the report could not be written.\n"},
    {"bench", ARGS_BENCH, verb_bench, "bench [OPTIONS]", "measure what locks cost on the nodes",
     "Acquires and releases many locks at a time, as fast as it can, each with a key that no other program\n"
     "uses. Short slices of this alternate with slices of a baseline (\"raw\"), which sends SET and a\n"
     "compare-and-delete to all nodes, without lock logic. Prints both, and their ratios. It is a load for the\n"
     "nodes. At the end, also after a signal, it deletes its keys.\n"
     "\n"
     "Exit status: 0 measured; 64 usage; 69 too few nodes can vote; 71 out of memory; 74 the report could not be\n"
     "written; 78 the nodes refuse the password, rights or settings; 128+N ended by signal N.\n"},
    {"config", ARGS_CONFIG, verb_config, "config [OPTIONS]", "show the settings, and where they come from",
     "Prints each setting, and its source: an option, the environment, a configuration file or the default.\n"
     "Reports faults in the files. Takes the options that a file may have. Asks no node, and shows no password.\n"
     "\n"
     "Exit status: 0 the files are good; 64 they are not, or usage; 74 the report could not be written.\n"},
};
_Static_assert(sizeof(verbs) / sizeof(verbs[0]) == N_VERBS, "each verb of VERB_MAP needs a row");

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
    text_format(&text, "\nThe options of a verb may stand before it, too. Durations are written 250ms, 30s, 2m. See\n"
                       "quorlock VERB --help for each verb, and man quorlock.\n");
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
    status = args_settle(settings, verb->place);
    if (status != 0) return status;
    may_take_keys = (verb->place & ARGS_COMMANDS) != 0 || verb->place == ARGS_LS ||
                    (verb->place == ARGS_DOCTOR && settings->acl != NULL);
    if (!may_take_keys && (settings->n_words > 0) != takes_keys) {
        say("%s takes %s: quorlock %s", verb->name, takes_keys ? "keys" : "no key", verb->synopsis);
        return EXIT_USAGE;
    }
    /* Other verbs must not write a guard, nor quarantine a node. bootstrap writes guards itself. */
    if ((verb->place & ARGS_LOCKING) == 0) settings->values.client.guard = QUORLOCK_GUARD_OFF;
    return verb->run(settings);
}

/* refuse_verb - print the list of verbs. NULL: no verb was given. */
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

/* verb_first - move the verb, which is at that index, in front of its options. Return the words from the verb on. */
static char **verb_first(char **words, int at)
{
    char *verb = words[at];

    memmove(words + 2, words + 1, (size_t)(at - 1) * sizeof(*words));
    words[1] = verb;
    return words + 1;
}

static int run_words(char **words, int count)
{
    static struct sources sources; /* callbacks for a frozen node may refer to it until the process ends */
    struct settings settings = {.values = values_begin(), .sources = &sources, .held_status = EXIT_HELD};
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
        if (strcmp(words[next], verbs[i].name) == 0)
            return run_verb(&settings, &verbs[i], verb_first(words, next), count - 1);
    if (strpbrk(words[next], ":@") == NULL) return refuse_verb(words[next]);
    say("an address is no verb: write --nodes URI,URI,... before it; see quorlock --help");
    return EXIT_USAGE;
}

/* fill_descriptors - open closed standard descriptors. Otherwise the next socket would get such a descriptor, and
 * messages would go to a Redis server. */
static bool fill_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) continue;
        /* Open it so that using it fails, as with a closed one. */
        if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    static char **words; /* copies, because passwords are removed from argv */

    signals_ignore_pipe();
    words = calloc((size_t)argc + 1, sizeof(*words));
    if (words == NULL || !fill_descriptors()) return EXIT_SYSTEM;
    for (int i = 0; i < argc; i++) {
        words[i] = strdup(argv[i]);
        if (words[i] == NULL) return EXIT_SYSTEM;
    }
    args_hide(argv, argc);
    return run_words(words, argc);
}
