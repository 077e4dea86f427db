/// What a shell reads to complete the command's words:
/// `carpack --generate-completion-script SHELL`.
///
/// Each script hands the line over to the command itself (``Completion``), so that it knows the
/// verbs and options of the carpack that is installed, and what is in the archive that is named on
/// the line.
enum CompletionScript: String {
  case bash, zsh, fish

  /// The script that the arguments ask for.
  init?(asked arguments: [String]) {
    guard arguments.count == 2, arguments[0] == "--generate-completion-script" else { return nil }
    self.init(rawValue: arguments[1])
  }

  /// Its text.
  var text: String {
    switch self {
    case .bash: Self.bashText
    case .zsh: Self.zshText
    case .fish: Self.fishText
    }
  }

  private static let bashText = #"""
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
    """#

  private static let zshText = #"""
    #compdef carpack

    _carpack() {
      local line kind value command=${(Q)words[1]}
      local -a lines typed values displays open_values open_displays suffixes
      [[ $command == '~/'* ]] && command=$HOME/${command#'~/'}
      typed=("${(@Q)words}")
      typed[CURRENT]=${(Q)PREFIX}
      lines=("${(@f)$("$command" ---complete zsh $((CURRENT - 1)) "${(@)typed}" 2>/dev/null)}")
      kind=$lines[1]

      case $kind in
        folders) compset -P '--*='; _files -/; return ;;
        files) compset -P '--*='; _files; return ;;
        files\ *)
          compset -P '--*='
          suffixes=(${${(s: :)kind}[2,-1]#.})
          _files -g "*.(${(j:|:)suffixes})(-.)"
          return
          ;;
      esac

      for line in "${(@)lines[2,-1]}"; do
        [[ -n $line ]] || continue
        value=${line%%$'\t'*}
        # What ends so goes on: no space behind it.
        if [[ $value == *[/=] ]]; then
          open_values+=("$value")
          open_displays+=("${line/$'\t'/  -- }")
        else
          values+=("$value")
          displays+=("${line/$'\t'/  -- }")
        fi
      done
      local -a listed
      [[ ${(j::)lines} == *$'\t'* ]] && listed=(-l)
      (( $#open_values )) && compadd $listed -S '' -V carpack-open -d open_displays -a open_values
      (( $#values )) && compadd $listed -V carpack -d displays -a values
      (( $#open_values + $#values ))
    }

    if [ "$funcstack[1]" = "_carpack" ]; then
      _carpack "$@"
    else
      compdef _carpack carpack
    fi
    """#

  private static let fishText = #"""
    # fish completion for carpack

    function __carpack_complete
        set -l before (commandline -opc)
        set -l current (commandline -ct)
        set -l all (commandline -op)
        set -l typed (string trim -l -c '"\'' -- $current)
        set -l behind (math (count $before) + 1)
        test -n "$current"; and set behind (math $behind + 1)
        set -l after
        test $behind -le (count $all); and set after $all[$behind..-1]
        set -l command (string escape -n -- $before[1] | string replace -r '^\\\\~' '~')
        set -l words (string escape -- $before "$typed" $after)
        set -l lines (eval $command ---complete fish (count $before) $words 2>/dev/null)
        test (count $lines) -gt 0; or return
        set -l kind (string split ' ' -- $lines[1])

        # A value behind "--option=" is one word with it.
        set -l option (string match -r -- '^--[^=]*=' $current)
        set -l path (string replace -r -- '^--[^=]*=' '' $current)
        switch $kind[1]
            case folders
                set -l found (__fish_complete_directories $path '')
                test (count $found) -gt 0; and printf '%s\n' "$option"$found
            case files
                set -l found (__fish_complete_path $path '')
                if test (count $kind) -gt 1
                    set -l suffixes (string join '|' -- (string escape --style=regex -- $kind[2..-1]))
                    set found (string match -r -- '^[^\t]*(?:/|'$suffixes')(?:\t.*)?$' $found)
                end
                test (count $found) -gt 0; and printf '%s\n' "$option"$found
            case '*'
                test (count $lines) -gt 1; and printf '%s\n' $lines[2..-1]
        end
    end

    complete -c carpack -k -f -a '(__carpack_complete)'
    """#
}
