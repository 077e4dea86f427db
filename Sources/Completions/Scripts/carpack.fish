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
