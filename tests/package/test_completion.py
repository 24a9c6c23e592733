#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_completion.py SOURCE BUILD - bash, zsh and fish complete what quorlock --help lists, of each verb: the real
shells load the files, and are asked what they offer. One that is not installed is left out."""
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True  # the tree stays as it is
LIMIT_S = 120
PROGRAM = "quorlock-test-program"  # what stands behind -- of run

# Each prints "= LINE", then a line for each word that it offers.
BASH = """
source "$COMPLETIONS/quorlock.bash"
set -- $(complete -p quorlock)
while IFS= read -r COMP_LINE; do
    COMP_POINT=${#COMP_LINE} COMPREPLY=()
    printf '= %s\\n' "$COMP_LINE"
    "$3" quorlock
    [ ${#COMPREPLY[@]} = 0 ] || printf '%s\\n' "${COMPREPLY[@]}"
done <"$ASKED" >"$OUT"
"""
FISH = """
source "$COMPLETIONS/quorlock.fish"
while read -l line
    printf '= %s\\n' "$line"
    complete -C "$line" | string replace -r '\\t.*' ''
end <"$ASKED" >"$OUT"
"""
# What a completion widget adds is written down; an array that compadd only fills is no offer.
ZSH = """
fpath=($COMPLETIONS $fpath)
autoload -Uz compinit && compinit -u -D
compadd() {
    local -a offers
    if [[ " ${(j: :)@} " != *' -'[OAD]' '* ]]; then
        builtin compadd -O offers "$@"
        (( $#offers )) && print -rl -- $offers >>$OUT
    fi
    builtin compadd "$@"
}
ask() {
    local line
    for line in "${(@f)$(<$ASKED)}"; do
        print -r -- "= $line" >>$OUT
        BUFFER=$line CURSOR=$#line
        zle complete
    done
    print -r -- '= ' >>$OUT
}
zle -C complete complete-word _generic
zle -N ask
bindkey '^G' ask
"""


def check(true, text):
    if not true:
        sys.exit(f"test_completion: FAILED: {text}")


def by_script(shell, script, env):
    subprocess.run([*shell, script], env=env, check=False, timeout=LIMIT_S, stdin=subprocess.DEVNULL)


def by_terminal(shell, script, env):
    """A line editor wants a terminal, and somebody who types."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe(shell[0], shell, env)
    setup = Path(env["HOME"], "setup")
    setup.write_text(script, encoding="utf-8")
    os.write(terminal, f"source {setup}\n\x07".encode())
    end, shown = time.monotonic() + LIMIT_S, b""
    while time.monotonic() < end and not Path(env["OUT"]).read_text(encoding="utf-8").endswith("\n= \n"):
        if select.select([terminal], [], [], 0.1)[0]:
            shown += os.read(terminal, 4096)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    os.close(terminal)
    check(time.monotonic() < end, f"zsh did not answer: {shown.decode(errors='replace')}")


def offers(ask, shell, script, lines, env):
    """{line: what the shell offers for its last word}, without what stands in front of it."""
    Path(env["ASKED"]).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    Path(env["OUT"]).write_text("", encoding="utf-8")
    ask(shell, script, env)
    found, line = {}, None
    for text in Path(env["OUT"]).read_text(encoding="utf-8").splitlines():
        if text.startswith("= "):
            line = text[2:]
            found[line] = set()
        elif text.strip():
            found[line].add(re.sub(r"^--[a-z-]+=", "", text).rstrip("/").rsplit("/", 1)[-1])
    return found


def expected(command, folder):
    """{line: what every shell must offer}, from --help."""
    def help_of(*verb):
        return subprocess.run([command, *verb, "--help"], stdout=subprocess.PIPE, check=True, text=True,
                              timeout=LIMIT_S).stdout

    verbs = re.findall(r"(?m)^  ([a-z]+) ", help_of().split("Options:")[0])
    check(len(verbs) >= 7 and "run" in verbs, verbs)
    lines = {"quorlock ": set(verbs), "quorlock --set one b": {verb for verb in verbs if verb.startswith("b")}}
    seen = set()  # what an option takes is the same for all verbs
    for verb in ["", *verbs]:
        text = help_of(*verb.split())
        options = re.findall(r"(?m)^  (-\w)?(?:, )?(--[a-z-]+)?(?:\[=(\S+)\]| (\S+))?", text.split("Options:")[1])
        options = [found for found in options if found[0] or found[1]]
        front = f"quorlock {verb} ".replace("  ", " ")
        lines[front + "-"] = {name for option in options for name in option[:2] if name}
        for letter, name, switch, value in [option for option in options if option[:2] not in seen]:
            seen.add((letter, name))
            words = {word for word in (switch or value).split("|") if word == word.lower() and word}
            words = {"one", "two"} if name == "--set" else words
            if value.startswith("FILE"):
                lines[f"{front}{name} {folder}/some-"] = lines[f"{front}{name}={folder}/some-"] = {"some-file"}
            elif name and (switch or value):
                lines[f"{front}{name}="] = words
            if value and not value.startswith("FILE"):
                lines[f"{front}{name or letter} "] = words
    lines[f"quorlock run -n key -- {PROGRAM[:-3]}"] = {PROGRAM}
    lines[f"quorlock run -n key -- {PROGRAM} {folder}/some-"] = {"some-file"}
    lines[f"quorlock elect name -- {PROGRAM[:-3]}"] = {PROGRAM}
    lines["quorlock inspect -- -"] = set()
    lines["quorlock run key"] = set()
    return lines


def main():
    source, build = (Path(word).resolve() for word in sys.argv[1:3])
    with tempfile.TemporaryDirectory(prefix="quorlock-completion-") as folder:
        Path(folder, "some-file").touch()
        Path(folder, "config").write_text("[set one]\n[set two]\n", encoding="ascii")
        Path(folder, "bin").mkdir()
        Path(folder, "bin", PROGRAM).write_text("#!/bin/sh\n", encoding="ascii")
        Path(folder, "bin", PROGRAM).chmod(0o755)
        env = {"HOME": folder, "PATH": f"{build}/bin:{folder}/bin:{os.environ['PATH']}", "TERM": "dumb",
               "LC_ALL": "C.UTF-8", "QUORLOCK_CONFIG": f"{folder}/config", "COMPLETIONS": f"{source}/src/completions",
               "ASKED": f"{folder}/lines", "OUT": f"{folder}/out"}
        os.environ["QUORLOCK_CONFIG"] = env["QUORLOCK_CONFIG"]
        lines = expected(build / "bin" / "quorlock", folder)
        for ask, shell, script in [(by_script, ["bash", "--norc", "-c"], BASH),
                                   (by_script, ["fish", "--no-config", "-c"], FISH),
                                   (by_terminal, ["zsh", "-f", "-i"], ZSH)]:
            if shutil.which(shell[0]) is None:
                print(f"{shell[0]}: not installed, left out")
                continue
            found = offers(ask, shell, script, lines, env)
            for line, words in lines.items():
                check(found.get(line) == words, f"{shell[0]}: \"{line}\": offers {sorted(found.get(line, []))}, "
                                                f"not {sorted(words)}")
            print(f"{shell[0]}: {len(lines)} lines")


main()
