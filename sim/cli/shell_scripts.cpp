#include "sim/cli/shell_scripts.hpp"

namespace orrery {
namespace {

// Every shell prints a line a candidate, a tab between it and its meaning. ":files" and ":folders"
// leave these to the shell, which knows how to quote them.

// Bash takes '=' and ':' for words of their own: they are joined again, and what Bash will keep is
// taken off what it is given.
constexpr std::string_view bash = R"(# Bash completion of orrery.
_orrery() {
  local program=${1/#\~/$HOME} words=() last i line prefix found=() IFS=$'\n'
  for ((i = 1; i <= COMP_CWORD; i++)); do
    last=${COMP_WORDS[i]}
    if ((${#words[@]})) && [[ $last == [=:]* || ${COMP_WORDS[i - 1]} == *[=:] ]]; then
      words[${#words[@]}-1]+=$last
    else
      words+=("$last")
    fi
  done
  local typed=${words[${#words[@]}-1]}
  case $last in
    = | :) prefix=$typed ;;
    *) prefix=${typed%"$last"} ;;
  esac
  typed=${typed#"$prefix"}
  while read -r line; do
    case $line in
      :files)
        compopt -o filenames
        found+=($(compgen -f -- "$typed"))
        ;;
      :folders)
        compopt -o filenames
        found+=($(compgen -d -- "$typed"))
        ;;
      *)
        line=${line%%$'\t'*}
        found+=("${line#"$prefix"}")
        ;;
    esac
  done < <("$program" completion words "${words[@]}" 2>/dev/null)
  COMPREPLY=("${found[@]}")
}
complete -F _orrery orrery
)";

constexpr std::string_view zsh = R"(#compdef orrery
_orrery() {
  local line word
  local -a found meanings
  local files= folders=
  while IFS= read -r line; do
    case $line in
      :files) files=yes ;;
      :folders) folders=yes ;;
      *)
        word=${line%%$'\t'*}
        found+=("$word")
        if [[ $line == *$'\t'* ]]; then
          meanings+=("$word  -- ${line#*$'\t'}")
        else
          meanings+=("$word")
        fi
        ;;
    esac
  done < <(${~words[1]} completion words "${(@)words[2,CURRENT]}" 2>/dev/null)
  (( ${#found} )) && compadd -l -d meanings -a found
  [[ -n $files ]] && _files
  [[ -n $folders ]] && _files -/
  return 0
}
if [[ $funcstack[1] == _orrery ]]; then
  _orrery "$@"
else
  compdef _orrery orrery
fi
)";

constexpr std::string_view fish = R"(# Fish completion of orrery.
# A command without completions of its own takes files, in whatever quotes.
function __orrery_candidates
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] completion words $words[2..-1] 2>/dev/null)
        switch $line
            case :files
                complete -C "__orrery_files "(commandline -ct)
            case :folders
                __fish_complete_directories (commandline -ct)
            case '*'
                echo $line
        end
    end
end
complete -c orrery -f -a '(__orrery_candidates)'
)";

}  // namespace

std::string_view completion_script(std::string_view shell) {
  if (shell == "bash") return bash;
  if (shell == "zsh") return zsh;
  if (shell == "fish") return fish;
  return {};
}

}  // namespace orrery
