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
