"""`gristmill completion`: what a shell needs to complete commands, options, recipes, executors and run directories.

The script a shell loads calls `gristmill` again with the words typed so far and `GRISTMILL_COMPLETE` set, and gets one
candidate per line, with a tab and what is said about it. No file name is ever run by a shell: the scripts split lines
and evaluate none. If there is no candidate the shell completes file names as it always does.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from gristmill.cli.help_page import first_sentence
from gristmill.errors import ConfigError, nearest

VARIABLE = "GRISTMILL_COMPLETE"
MOST_ENTRIES = 2_000  # of a directory: whoever presses Tab does not want to wait for more

BASH = r"""
_gristmill() {
    local line value
    COMPREPLY=()
    while IFS= read -r line; do
        printf -v value '%q' "${line%%$'\t'*}"
        COMPREPLY+=("$value")
        [[ $value == */ ]] && compopt -o nospace
    done < <(GRISTMILL_COMPLETE=bash gristmill "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _gristmill gristmill
"""

ZSH = r"""
#compdef gristmill
_gristmill() {
    local line
    local -a described directories
    for line in "${(@f)$(GRISTMILL_COMPLETE=zsh gristmill "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
        [[ -z $line ]] && continue
        if [[ ${line%%$'\t'*} == */ ]]; then
            directories+=("${line%%$'\t'*}")
        else
            described+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
        fi
    done
    (( $#directories )) && compadd -S '' -- "${directories[@]}"
    (( $#described )) && _describe gristmill described
    (( $#directories + $#described )) || _files
}
if [[ "${funcstack[1]}" == _gristmill ]]; then
    _gristmill "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
    compdef _gristmill gristmill
fi
"""

FISH = r"""
function __gristmill_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l found (GRISTMILL_COMPLETE=fish gristmill $words[2..-1] "$current" 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path "$current"
    end
end
complete -c gristmill -f -a '(__gristmill_complete)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}
WHERE = {
    "bash": """add to ~/.bashrc:  eval "$(gristmill completion bash)" """,
    "zsh": """add to ~/.zshrc:  eval "$(gristmill completion zsh)" """,
    "fish": "run once:  gristmill completion fish > ~/.config/fish/completions/gristmill.fish",
}


class Candidate(NamedTuple):
    """One way to continue a word."""

    value: str
    said: str = ""


def completion(
    shell: Annotated[
        str | None, typer.Argument(metavar="SHELL", help="bash, zsh or fish. Default: the shell in $SHELL.")
    ] = None,
) -> None:
    """Print a script that lets a shell complete commands, options, recipes and run directories with Tab."""
    chosen = shell or Path(os.environ.get("SHELL", "")).name
    if chosen not in SCRIPTS:
        hint = nearest(chosen, SCRIPTS)
        raise ConfigError(f"completion: expected a shell ({', '.join(SCRIPTS)}); got {chosen!r}{hint}")
    # First the script, so that `eval "$(…)"` sees nothing else; the remark is a comment in all three shells.
    typer.echo(f"{SCRIPTS[chosen].strip()}\n# To keep it, {WHERE[chosen].strip()}")


def answer_shell(app: typer.Typer, shell: str, words: list[str]) -> str:
    """Return the lines a shell asked for."""
    command = typer.main.get_command(app)
    typed, kept = join_equals(words) if shell == "bash" else (words, 0)
    found = candidates(command, typed or [""])
    # A line is one candidate: a name with a line break or a tab in it cannot be offered.
    lines = [c for c in found if c.value.isprintable()]
    return "".join(f"{c.value[kept:]}\t{c.said}\n" for c in lines)


def join_equals(words: list[str]) -> tuple[list[str], int]:
    """Undo what bash does to `--option=value`, which it hands over as three words; and how much it wants to keep.

    >>> join_equals(["run", "--executor", "=", "ra"])
    (['run', '--executor=ra'], 11)
    """
    joined: list[str] = []
    kept = 0
    for number, word in enumerate(words):
        after = number > 0 and words[number - 1] == "=" and len(joined) > 0
        if (word == "=" and joined and joined[-1].startswith("--")) or (after and "=" in joined[-1]):
            joined[-1] += word
        else:
            joined.append(word)
    if joined and joined[-1].startswith("--") and "=" in joined[-1] and words[-1] != joined[-1]:
        kept = joined[-1].index("=") + 1
    return joined, kept


def candidates(command: Any, words: list[str]) -> list[Candidate]:
    """How the last of these words may be continued."""
    *before, typed = words
    position, expecting = 0, None
    for word in before:
        if expecting is not None:
            expecting = None
        elif word.startswith("-") and len(word) > 1:
            option = _option(command, word.partition("=")[0])
            expecting = option if option is not None and "=" not in word and _takes_value(option) else None
        elif hasattr(command, "commands"):
            command = command.commands.get(word.replace("_", "-"))
            if command is None:
                return []
        else:
            position += 1
    if expecting is not None:
        return _values(command, expecting, typed)
    if typed.startswith("-"):
        return _after_dash(command, typed)
    if hasattr(command, "commands"):
        known = [(name, each) for name, each in command.commands.items() if not each.hidden]
        return [Candidate(name, first_sentence(each.help or "")) for name, each in known if name.startswith(typed)]
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    return _values(command, arguments[min(position, len(arguments) - 1)], typed) if arguments else []


def _option(command: Any, name: str) -> Any:
    wanted = name.replace("_", "-")
    return next((p for p in command.params if wanted in (*p.opts, *p.secondary_opts)), None)


def _takes_value(option: Any) -> bool:
    return option.param_type_name == "option" and not option.is_flag and not option.count


def _after_dash(command: Any, typed: str) -> list[Candidate]:
    name, equals, begun = typed.partition("=")
    if equals:
        option = _option(command, name)
        found = [] if option is None or not _takes_value(option) else _values(command, option, begun)
        return [Candidate(f"{name}={candidate.value}", candidate.said) for candidate in found]
    options = [param for param in command.params if param.param_type_name == "option" and not param.hidden]
    names = [(name, option) for option in options for name in (*option.opts, *option.secondary_opts)]
    said = {name: " ".join((option.help or "").split()) for name, option in names} | {"--help": ""}
    return [Candidate(name, said[name]) for name in said if name.startswith(typed) and name.startswith("--")]


def _values(command: Any, param: Any, typed: str) -> list[Candidate]:
    """What an option or an argument may be given; nothing where only its user knows."""
    offer = OFFERS.get(f"{command.name} {param.name}") or OFFERS.get(param.name)
    return [] if offer is None else [each for each in offer(typed) if each.value.startswith(typed)]


def _recipes(typed: str) -> Iterator[Candidate]:
    from gristmill.config.shipped import find_recipe, shipped_recipes

    for name in shipped_recipes():
        if name.startswith(typed):
            yield Candidate(name, find_recipe(name).description)
    for path, entry in _entries(typed):
        if entry.is_dir():
            yield Candidate(f"{path}/")
        elif entry.suffix in (".yaml", ".yml"):
            yield Candidate(path)


def _executors(typed: str) -> Iterator[Candidate]:
    from gristmill.backends.options import EXECUTORS

    for name, path in EXECUTORS.items():
        yield Candidate(name if "_" in typed else name.replace("_", "-"), path)


def _run_directories(typed: str) -> Iterator[Candidate]:
    for path, entry in _entries(typed):
        if not entry.is_dir():
            continue
        is_run = any((entry / name).exists() for name in (".gristmill", "ledger.jsonl", "header.json"))
        yield Candidate(path if is_run else f"{path}/", "a run" if is_run else "")


def _stages(typed: str) -> Iterator[Candidate]:
    from gristmill.config.catalog import filters, modifiers, rule_sets, stages

    for name in sorted({**stages(), **filters(), **modifiers(), **rule_sets()}):
        yield Candidate(name)


def _entries(typed: str) -> Iterator[tuple[str, Path]]:
    """What is in the directory the word names so far, as the word would continue; hidden things if a dot was typed."""
    directory, _, begun = typed.rpartition("/")
    directory = f"{directory}/" if "/" in typed else ""
    try:
        found = sorted(islice(Path(directory or ".").expanduser().iterdir(), MOST_ENTRIES))
    except OSError:
        return
    for entry in found:
        if entry.name.startswith(begun) and (begun.startswith(".") or not entry.name.startswith(".")):
            yield f"{directory}{entry.name}", entry


def _one_of(*values: str) -> Callable[[str], Iterable[Candidate]]:
    return lambda _: map(Candidate, values)


OFFERS: dict[str, Callable[[str], Iterable[Candidate]]] = {
    "recipe": _recipes,
    "against": _recipes,
    "executor": _executors,
    "run_dir": _run_directories,
    "run_dirs": _run_directories,
    "run_a": _run_directories,
    "run_b": _run_directories,
    "filetype": _one_of("jsonl", "parquet", "arrow"),
    "log": _one_of("text", "json"),
    "observe": _one_of("full", "counts", "off"),
    "shell": _one_of(*SCRIPTS),
    "stages name": _stages,
    "show name": _recipes,
    "simulate spec": _run_directories,
    "shards output": _run_directories,
}
