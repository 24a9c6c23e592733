# SPDX-License-Identifier: BSD-3-Clause
# Completion for fish: what quorlock itself lists in --help, so that it fits every version.

# A line an option: its name, a tab, what it takes as --help shows it (" FILE", "[=yes|no]", ""), a tab, the rest.
function __quorlock_options
    for line in ($argv --help 2>/dev/null | string match -r '^  -.*')
        set -l parts (string match -r '^  (-[A-Za-z]|)(, |)(--[a-z-]+|)(\[=[^\]]*\]| [^ ]+|) *(.*)$' -- $line)
        for name in $parts[2] $parts[4]
            test -n "$name"; and printf '%s\t%s\t%s\n' $name "$parts[5]" "$parts[6]"
        end
    end
end

# What may stand behind an option that takes this value.
function __quorlock_value -a command option value
    set value (string replace -r '^ |^\[=' '' -- $value | string replace -r ']$' '')
    if test $option = --set
        $command config 2>/dev/null | string replace -rf '^sets: ' '' | string split ', '
    else if string match -q 'FILE*' -- $value
        __fish_complete_path (string replace -r '^--[a-z-]+=' '' -- (commandline -ct))
    else
        # In capitals it is not to be written so.
        string split '|' -- $value | string match -rv '[A-Z]'
    end
end

function __quorlock_takes -a option
    string replace -rf -- "^$option\t([^\t]*)\t.*" '$1' $argv[2..]
end

function __quorlock
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l command $words[1]
    set -l options (__quorlock_options $command)
    set -l verb
    set -l option
    set -l skip 0
    for word in $words[2..]
        if test $skip = 1
            set skip 0
            set option
        else if test "$word" = --
            return
        else if string match -q -- '-*' $word
            if string match -q -- ' *' (__quorlock_takes $word $options)
                set option $word
                set skip 1
            end
        else if test -z "$verb"
            set verb $word
            set options (__quorlock_options $command $verb)
        end
    end
    if test -n "$option"
        __quorlock_value $command $option (__quorlock_takes $option $options)
    else if string match -q -- '--*=*' $current
        set option (string split -m 1 '=' -- $current)[1]
        for word in (__quorlock_value $command $option (__quorlock_takes $option $options))
            string match -q -- "--*=*" $word; and echo $word; or echo $option=$word
        end
    else if string match -q -- '-*' $current
        string replace -r '\t[^\t]*\t' '\t' -- $options
    else if test -z "$verb"
        $command --help 2>/dev/null | string match -r '^  [a-z].*' | string replace -r '^  ([a-z]*).*  (.*)' '$1\t$2'
    end
end

# Behind -- of run and elect another command stands.
function __quorlock_is_behind
    set -l words (commandline -opc)
    contains -- -- $words; or return 1
    contains -- run $words; or contains -- elect $words
end

function __quorlock_behind
    set -l words (commandline -opc)
    set -l place (contains -i -- -- $words)
    complete -C (string join ' ' -- (string escape -- $words[(math $place + 1)..]) (commandline -ct))
end

complete -c quorlock -f
complete -c quorlock -n 'not __quorlock_is_behind' -a '(__quorlock)'
complete -c quorlock -n __quorlock_is_behind -a '(__quorlock_behind)'
