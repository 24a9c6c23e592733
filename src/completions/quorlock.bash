# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Completion for bash: what quorlock itself lists in --help, so that it fits every version.

# _quorlock_options COMMAND [VERB]: sets takes[OPTION] to what it takes, as --help shows it: " FILE", "[=yes|no]", "".
_quorlock_options() {
    local line name
    takes=()
    while IFS= read -r line; do
        [[ $line =~ ^'  '(-[A-Za-z])?(', ')?(--[a-z-]+)?('[='[^]]*']'|' '[^' ']+)? ]] || continue
        for name in "${BASH_REMATCH[1]}" "${BASH_REMATCH[3]}"; do
            if [ -n "$name" ]; then takes[$name]=${BASH_REMATCH[4]}; fi
        done
    done < <("$@" --help 2>/dev/null)
}

_quorlock_verbs() {
    "$1" --help 2>/dev/null | sed -n '/^Verbs:/,/^$/s/^  \([a-z]*\) .*/\1/p'
}

# _quorlock_value COMMAND OPTION BEGUN: what may stand behind the option.
_quorlock_value() {
    local value=${takes[$2]} word
    value=${value#[ []} value=${value#=} value=${value%]}
    if [ "$2" = --set ]; then
        value=$("$1" config 2>/dev/null | sed -n 's/^sets: //p')
        value=${value//, /|}
    elif [[ $value == FILE* ]]; then
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$3")
        return
    fi
    for word in ${value//|/ }; do
        # In capitals it is not to be written so.
        if [ "$2" = --set ] || [[ $word != *[A-Z]* ]]; then
            case $word in "$3"*) COMPREPLY+=("$word") ;; esac
        fi
    done
}

_quorlock() {
    local command=$1 line=${COMP_LINE:0:COMP_POINT} words=() i last verb='' separator=0 option=''
    local -A takes
    COMPREPLY=()
    # By blanks: bash splits words at = and :, too.
    read -ra words <<<"$line"
    [[ $line != *[[:blank:]] ]] || words+=('')
    last=$((${#words[@]} - 1))
    _quorlock_options "$command"
    for ((i = 1; i < last; i++)); do
        option=''
        case ${words[i]} in
        --)
            separator=$i
            break
            ;;
        -*) case ${takes[${words[i]}]:-} in ' '*) option=${words[i++]} ;; esac ;;
        *)
            if [ -z "$verb" ]; then
                verb=${words[i]}
                _quorlock_options "$command" "$verb"
            fi
            ;;
        esac
    done
    if [ "$separator" != 0 ]; then
        [ "$verb" = run ] || [ "$verb" = elect ] || return 0
        compopt -o filenames 2>/dev/null
        if [ "$last" = $((separator + 1)) ]; then
            mapfile -t COMPREPLY < <(compgen -c -- "${words[last]}")
        else
            mapfile -t COMPREPLY < <(compgen -f -- "${words[last]}")
        fi
    elif [ -n "$option" ] && [ "$i" -gt "$last" ]; then
        _quorlock_value "$command" "$option" "${words[last]}"
    elif [[ ${words[last]} == --*=* ]]; then
        _quorlock_value "$command" "${words[last]%%=*}" "${words[last]#*=}"
    elif [[ ${words[last]} == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "${!takes[*]}" -- "${words[last]}")
    elif [ -z "$verb" ]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_quorlock_verbs "$command")" -- "${words[last]}")
    fi
}

complete -F _quorlock quorlock
