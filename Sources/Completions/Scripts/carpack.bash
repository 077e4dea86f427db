# bash completion for carpack                              -*- shell-script -*-

_carpack() {
  local line answer kind suffix current=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[0]}
  local -a lines=()
  COMPREPLY=()
  case $command in '~/'*) command=$HOME/${command#'~/'} ;; esac
  answer=$("$command" ---complete bash "${COMP_LINE:0:COMP_POINT}" "${COMP_LINE:COMP_POINT}" \
    "$COMP_WORDBREAKS" 2>/dev/null) || return 0
  while IFS= read -r line; do lines+=("$line"); done <<<"$answer"
  kind=${lines[0]}

  case $kind in
    none)
      for line in "${lines[@]:1}"; do COMPREPLY+=("$line"); done
      case ${COMPREPLY[0]:-} in */ | *=) compopt -o nospace 2>/dev/null ;; esac
      return 0
      ;;
  esac

  case $current in '=' | ':') current='' ;; esac
  if declare -F _filedir >/dev/null; then
    # Knows about quotes; it reads the word from "cur".
    local cur=$current
    case $kind in
      folders) _filedir -d ;;
      files) _filedir ;;
      *)
        suffix=${kind#files .}
        _filedir "@(${suffix// ./|})"
        ;;
    esac
    return 0
  fi
  compopt -o filenames 2>/dev/null
  case $kind in
    folders) answer=$(compgen -d -- "$current") ;;
    files) answer=$(compgen -f -- "$current") ;;
    *)
      answer=$(
        compgen -d -- "$current"
        for suffix in ${kind#files }; do compgen -f -X "!*$suffix" -- "$current"; done
      )
      ;;
  esac
  while IFS= read -r line; do
    if [ -n "$line" ]; then COMPREPLY+=("$line"); fi
  done <<<"$answer"
}

complete -F _carpack carpack
