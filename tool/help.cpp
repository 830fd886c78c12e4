#include "tool/help.hpp"

#include <array>

namespace holdfast::tool {

namespace {

constexpr std::string_view how_durations_are_said =
    "Durations: 500ms, 1.5s, 2m, 1h30m; a bare number is seconds.\n";

constexpr std::string_view run_footer =
    "Examples:\n"
    "  holdfast run nightly -n -E 0 -- ./backup.sh      cron on four hosts: one runs it\n"
    "  holdfast run deploy -w 30s -- ./deploy.sh prod   wait for half a minute at most\n"
    "  holdfast run licence --slots 3 -- simulate       three at a time\n"
    "  holdfast run report -c 'make report | mail ops'  a shell command\n\n"
    "A LOCK that begins with - needs a -- of its own before it: holdfast run -n -- -name -- CMD\n\n"
    "The command finds HOLDFAST_LOCK, HOLDFAST_FENCE (the fence), HOLDFAST_OWNER and\n"
    "HOLDFAST_STORE in its environment.\n\n"
    "Exit code: the command's own, 128+N if it died of signal N; else 64 usage, 69 store\n"
    "unreachable, 75 busy (-E), 77 not permitted, 78 configuration refused, 79 lock lost, 124\n"
    "ended by --max-run, 125 holdfast itself failed, 126 not executable, 127 not found.\n"
    "The command may use the same numbers: the outcome in --status-file tells them apart.\n\n"
    "Durations: 500ms, 1.5s, 2m, 1h30m; a bare number is seconds.\n";

constexpr std::string_view hold_footer =
    "Holds the lock until a signal (INT, TERM, HUP, QUIT) or until stdin is closed. It ignores a\n"
    "stdin that is /dev/null, and a terminal while hold runs in the background.\n"
    "From a shell: coproc L { holdfast hold --json deploy; }; read -r line <&\"${L[0]}\"\n\n"
    "Exit code: 0 released, 75 busy (-E), 79 lost, 128+N signal N ended the wait.\n";

constexpr std::string_view try_footer =
    "Does not take the lock, so the answer may be out of date when it is printed.\n\n"
    "Exit code: 0 free, 75 busy (-E), 78 in use as another kind, or with other --slots.\n";

constexpr std::string_view force_footer =
    "The next waiter gets the lock with a greater fence. The former holder learns of it at\n"
    "its next renewal; until then only the fence stops its writes.\n"
    "On a terminal the command asks first; without a terminal it needs --yes.\n\n"
    "Exit code: 0 done, or the lock was free; 1 you answered no, or the lock has another holder\n"
    "by now, or a program holds it from which the store cannot take it; 75 held, but not by\n"
    "--owner; 78 a limit or a latch, which has no holders.\n";

constexpr std::string_view limit_footer =
    "Examples:\n"
    "  holdfast limit mail --rate 100/1h --key \"$user\" && sendmail …    a hundred an hour for "
    "each user\n"
    "  holdfast limit api --rate 10/s:20 --rate 600/1m -w 30s && curl …  wait until both rates "
    "allow it\n\n"
    "Exit code: 0 taken, 75 not enough tokens (-E): the output says when there are enough. Every\n"
    "program states the same rates (else 78). To change them, give the new rates with a greater\n"
    "--rules-version.\n";

constexpr std::string_view elect_footer =
    "One of the candidates leads and runs the command; the others wait. holdfast show NAME shows\n"
    "the leader and its note. If leadership is lost, elect ends the command as run does when a\n"
    "lock is lost, and ends with 79. To become a candidate again, start elect again (systemd:\n"
    "Restart=always), or use --again. Environment and exit codes are those of run.\n";

constexpr std::string_view sem_footer =
    "The same as holdfast run NAME --slots COUNT. Environment and exit codes are those of run.\n";

constexpr std::string_view latch_footer =
    "Examples:\n"
    "  holdfast latch ready 3 --down 1         one of three is ready\n"
    "  holdfast latch ready 3 -w 5m && ./go    runs ./go when all three are ready\n\n"
    "Exit code: 0 open (or counted down, removed), 75 not open when -w is over (-E), 64\n"
    "--down is greater than the count that is left, 78 in use with another count.\n";

constexpr std::string_view barrier_footer =
    "Arrives, and waits for the others: all continue when COUNT have arrived. The next COUNT\n"
    "can use the same name. Example: holdfast barrier stage 4 -w 10m && next_stage\n\n"
    "Exit code: 0 all have arrived; 75 the time is over (-E): this participant has left, and\n"
    "the others still wait; 79 another participant died while this one waited; 78 COUNT\n"
    "participants are there already, or others state another count.\n";

constexpr std::string_view top_footer =
    "Keys: up and down select, enter shows holders and queue, / filters, n k h l w o sort, u\n"
    "takes the lock away after a question, p pauses, ? lists all keys, q quits.\n\n"
    "Queries take a twentieth of the time at most: with many names the rows are refreshed less\n"
    "often. The second line shows the share of the time that they took.\n\n"
    "Without a terminal give --once or --json.\n\n"
    "Exit code: 0; 128+N after signal N; 64 no terminal; 69 the store does not answer: at the\n"
    "start, or at any time with --json; 77 --once, and this user may read none of the names;\n"
    "78 the store cannot list its names (a dialect, mode=session).\n";

constexpr std::string_view watch_footer =
    "Examples:\n"
    "  holdfast watch deploy                          what happens to it, until ^C\n"
    "  holdfast watch deploy --until free -w 10m && …  wait until it is free, take nothing\n\n"
    "Events: holding and waiting (found at the start), granted, released (or taken away),\n"
    "hand-over, lost (the lease of a holder ended, or its process died), joined and left\n"
    "(waiters). For --until a hand-over counts as granted and as released, too.\n\n"
    "watch sends a query every --interval, because the store notifies only waiters. A change that\n"
    "is undone between two queries is not seen.\n\n"
    "Exit code: 0 the --until event has happened, or without --until after -w or a signal; 75\n"
    "the time of -w is over (-E); 128+N signal N came before the --until event.\n";

constexpr std::string_view graph_footer =
    "A line that begins with * is part of a ring. If each process has one thread, a ring is a\n"
    "deadlock; the store cannot tell the threads of a process apart. A wait for a permit that\n"
    "several holders can free is shown as \"may wait\", and is never part of a ring. A run\n"
    "that waits for its command is shown only if it is on this host.\n\n"
    "Exit code: 0; 69 the store does not answer; 77 this user may read none of the names; 78 the\n"
    "store cannot list its names (a dialect, mode=session).\n";

constexpr std::string_view completion_footer =
    "Examples:\n"
    "  source <(holdfast completion bash)\n"
    "  holdfast completion zsh > \"${fpath[1]}/_holdfast\"\n"
    "  holdfast completion fish > ~/.config/fish/completions/holdfast.fish\n\n"
    "The scripts get the names from `holdfast completion names WORD`, which reads the store of\n"
    "--store or $HOLDFAST_STORE and ends after half a second at the latest.\n";

constexpr std::string_view manual_footer =
    "Examples:\n"
    "  holdfast manual                                   the pages\n"
    "  holdfast manual holdfast-run | scdoc | man -l -   one of them\n";

constexpr std::string_view serve_footer =
    "Examples:\n"
    "  holdfast serve --store redis://cache --store sqlite:/var/lib/jobs/locks.db\n"
    "  holdfast serve --host locks.example.com            behind a proxy of that name\n\n"
    "Only this machine can see the page, at http://127.0.0.1:7440/ (--listen changes that), and\n"
    "viewers cannot change anything (--allow-unlock changes that). It runs until a signal.\n\n"
    "Exit code: 0, 64 an address without a port or one URL given twice, 77 a store refuses\n"
    "this user, 78 it cannot listen, or cannot use the file of the token.\n";

constexpr std::string_view ping_footer =
    "Each round trip is a query about one name, and changes nothing. After Ctrl-C, ping\n"
    "prints the summary and ends. The median is that of the last 10,000 answers.\n\n"
    "Exit code: 0 the store answered each query, 69 it did not.\n";

constexpr std::string_view doctor_footer =
    "Examples:\n"
    "  holdfast doctor                           the store that other commands use\n"
    "  holdfast doctor redis://cache.internal    another one\n\n"
    "Connects, takes and releases locks under a name of its own, checks notifications, reads the\n"
    "servers' settings, and looks for stuck waiters and leftovers. Each finding says what to "
    "do.\n\n"
    "Exit code: 0 all is well, 1 warnings only, 69 the store does not work, 77 a right is\n"
    "missing, 78 a setting can lose locks.\n";

constexpr std::string_view metrics_footer =
    "Examples:\n"
    "  holdfast metrics -o /var/lib/node_exporter/textfile/holdfast.prom\n\n"
    "Run it from cron for node_exporter's textfile collector.\n\n"
    "Exit code: 0; 69 the store is away; 77 it refuses this user, or this user may read none of\n"
    "the names; 78 it is not a store of holdfast. If the store is away, refuses this user, or is\n"
    "not a store of holdfast, the text says holdfast_store_up 0. If it cannot list its names (a\n"
    "dialect, mode=session), the text says holdfast_store_up 1, and has no figures of names.\n";

constexpr auto commands = std::to_array<command_help>({
    {"run", "holdfast run LOCK [OPTIONS] -- CMD ARG…", "Runs a command while holding a lock.",
     "the same as --log-format=json", run_footer},
    {"hold", "holdfast hold LOCK [OPTIONS]", "Takes a lock and holds it until it is stopped.",
     "one JSON line when it is held", hold_footer},
    {"try", "holdfast try LOCK [OPTIONS]", "Says whether a lock is free now.", "the answer as JSON",
     try_footer},
    {"list", "holdfast list [PATTERN] [OPTIONS]",
     "Lists the names in use, their holders and waiters.", "the list as JSON",
     "Quote the pattern: holdfast list 'shop:*'\n\n"
     "Exit code: 0; 69 the store does not answer; 77 this user may read none of the names; 78 the\n"
     "store cannot list its names (a dialect, mode=session).\n"},
    {"show", "holdfast show LOCK [OPTIONS]", "Shows everything the store knows about a name.",
     "the same as JSON",
     "Exit code: 0, also if the name is not in use; 69 the store does not answer; 77 this user "
     "may\n"
     "not read the name; 78 holdfast did not write the entry of the name.\n"},
    {"force-unlock", "holdfast force-unlock LOCK [OPTIONS]", "Takes a lock away from its holder.",
     "what was done as JSON", force_footer},
    {"top", "holdfast top [PATTERN] [OPTIONS]",
     "Shows the names in use, their holders and waiters, as a live table.",
     "the list as JSON, one line a round", top_footer},
    {"watch", "holdfast watch LOCK [OPTIONS]", "Prints a line when a lock changes hands.",
     "one JSON object a line", watch_footer},
    {"graph", "holdfast graph [PATTERN] [OPTIONS]",
     "Shows which process waits for which, and marks rings.", "the graph as JSON", graph_footer},
    {"elect", "holdfast elect NAME [OPTIONS] -- CMD ARG…", "Runs a command while leading.",
     "the same as --log-format=json", elect_footer},
    {"limit", "holdfast limit NAME --rate RATE… [OPTIONS]",
     "Takes tokens of a rate limit, or says when there will be enough.", "the answer as JSON",
     limit_footer},
    {"sem", "holdfast sem NAME COUNT [OPTIONS] -- CMD ARG…",
     "Runs a command while holding one of COUNT permits.", "the same as --log-format=json",
     sem_footer},
    {"latch", "holdfast latch NAME COUNT [OPTIONS]",
     "Waits until COUNT have counted down, or counts down.", "the answer as JSON", latch_footer},
    {"barrier", "holdfast barrier NAME COUNT [OPTIONS]", "Waits until COUNT have arrived.",
     "the answer as JSON", barrier_footer},
    {"serve", "holdfast serve [OPTIONS]", "Shows holders and waiters in a browser, live.",
     "one JSON line when it listens, with the address (and the token)", serve_footer},
    {"completion", "holdfast completion bash|zsh|fish",
     "Prints the script that lets a shell complete commands, options and names.", "no effect here",
     completion_footer},
    {"manual", "holdfast manual [PAGE]",
     "Prints a page of the manual in the source form of scdoc(5).", "no effect here",
     manual_footer},
    {"ping", "holdfast ping [OPTIONS]", "Measures round trips to the store.",
     "one JSON line a round trip, and the summary", ping_footer},
    {"doctor", "holdfast doctor [URL] [OPTIONS]",
     "Looks for what is wrong with a store, and says what to do.", "the findings as JSON",
     doctor_footer},
    {"metrics", "holdfast metrics [OPTIONS]", "Prints the store's state for Prometheus.",
     "no effect: the text is for Prometheus", metrics_footer},
    {"version", "holdfast version [OPTIONS]",
     "Prints the version and the stores that are built in.", "the same as JSON", ""},
});

}  // namespace

const command_help& help_of(std::string_view command) noexcept {
  for (const auto& c : commands)
    if (c.name == command) return c;
  return commands.front();
}

std::span<const command_help> all_commands() noexcept { return commands; }

std::string manual_page_of(const command_help& c) { return "holdfast-" + std::string(c.name); }

std::vector<std::string> manual_pages() {
  std::vector<std::string> all{"holdfast"};
  for (const command_help& c : commands) all.push_back(manual_page_of(c));
  return all;
}

std::string overview() {
  return "holdfast " HOLDFAST_VERSION
         ": locks across processes and machines\n\n"
         "  holdfast run LOCK [options] -- CMD ARG…   run a command while holding a lock\n"
         "  holdfast hold LOCK                        hold the lock until a signal or end of "
         "stdin\n"
         "  holdfast try LOCK                         is the lock free now? ends with 0 or 75\n"
         "  holdfast list [PATTERN]                   names in use, holders, waiters\n"
         "  holdfast show LOCK                        holders and queue of one name\n"
         "  holdfast force-unlock LOCK                take the lock away from its holder\n"
         "  holdfast top [PATTERN]                    the names in use, live\n"
         "  holdfast watch LOCK                       a line for each change\n"
         "  holdfast graph                            which process waits for which\n"
         "  holdfast elect NAME -- CMD ARG…           run a command while leading\n"
         "  holdfast limit NAME --rate 10/s           take a token; ends with 0 or 75\n"
         "  holdfast sem NAME 3 -- CMD ARG…           run a command, three at a time\n"
         "  holdfast latch NAME 3                     wait until three have counted down\n"
         "  holdfast barrier NAME 3                   wait until three have arrived\n"
         "  holdfast serve                            show the locks in a browser, live\n"
         "  holdfast ping                             how long a round trip takes\n"
         "  holdfast doctor [URL]                     what is wrong with a store, and what to do\n"
         "  holdfast metrics                          the store's state for Prometheus\n"
         "  holdfast demo NAME                        a demonstration; holdfast demo lists them\n"
         "  holdfast completion SHELL                 completion for bash, zsh, fish\n"
         "  holdfast manual [PAGE]                    the manual, as source for scdoc\n"
         "  holdfast version                          version and stores\n\n"
         "holdfast COMMAND --help says more. The store is --store URL, else $HOLDFAST_STORE, "
         "else\n"
         "an SQLite file of this user on this machine.\n" +
         std::string(how_durations_are_said);
}

}  // namespace holdfast::tool
