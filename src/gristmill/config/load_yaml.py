"""`load_yaml`: YAML text to plain Python values, with mistakes reported by line.

A recipe may come from a stranger, so what it can cost is bounded before anything is made of it: its size, how deep it
is nested, and how many values it has once its aliases are written out. Nine aliases of nine aliases, eight levels deep,
are 400 bytes of text and 43 million values.
"""

from pathlib import Path
from typing import TYPE_CHECKING, cast

from gristmill.errors import ConfigError

if TYPE_CHECKING:
    import yaml

MAX_BYTES = 1 << 20  # the longest recipe that comes with the package has 2 kB
MAX_DEPTH = 50
MAX_VALUES = 100_000  # with every alias written out


def read_yaml_file(path: Path, *, who: str) -> str:
    """Return the text of a file, reading no more of it than a recipe may have."""
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ConfigError(f"{who}: expected at most {MAX_BYTES:,} bytes of YAML; got more")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"{who}: expected UTF-8 text; got other bytes") from None


def load_yaml(text: str, *, who: str) -> object:
    """Parse one document. A key given twice is an error: YAML would keep the last one without a word."""
    import yaml

    if len(text) > MAX_BYTES:
        raise ConfigError(f"{who}: expected at most {MAX_BYTES:,} characters of YAML; got {len(text):,}")
    loader = _bounded_loader(text, who)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _check_nodes(node, who)
        return cast("object", loader.construct_document(node))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise ConfigError(f"{who}: expected YAML; got a mistake{where}: {problem}") from None
    except (ValueError, LookupError, AttributeError, TypeError) as error:
        if isinstance(error, ConfigError):
            raise
        # A value that does not fit its own tag or form: 2001-99-99, `!!int x`, a number of 5,000 digits.
        raise ConfigError(f"{who}: expected YAML; got a value that cannot be read: {error}") from None
    finally:
        loader.dispose()


def _bounded_loader(text: str, who: str) -> "yaml.SafeLoader":
    import yaml

    class Loader(yaml.SafeLoader):
        """Composes nodes by recursion, as its base does, but only to a certain depth."""

        depth = 0

        def compose_node(self, parent: "yaml.Node | None", index: int) -> "yaml.Node | None":
            self.depth += 1
            if self.depth > MAX_DEPTH:
                line = self.peek_event().start_mark.line + 1  # type: ignore[no-untyped-call]
                raise ConfigError(f"{who}: expected at most {MAX_DEPTH} levels of nesting; got more in line {line}")
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

    return Loader(text)


def _check_nodes(root: "yaml.Node", who: str) -> None:
    """Refuse keys given twice, and aliases that contain themselves or stand for too much. Looks at each node once."""
    known: dict[int, tuple[int, int]] = {}  # values in a node and levels, aliases written out; zeros while looking

    def look(node: "yaml.Node") -> tuple[int, int]:
        if id(node) not in known:
            known[id(node)] = (0, 0)
            known[id(node)] = look_into(node)
        elif known[id(node)] == (0, 0):
            raise ConfigError(f"{who}: expected no alias within what it stands for; got one in line {_line(node)}")
        return known[id(node)]

    def look_into(node: "yaml.Node") -> tuple[int, int]:
        values, levels = 1, 1
        if isinstance(node.value, list):
            pairs = [item if isinstance(item, tuple) else (None, item) for item in node.value]
            _refuse_repeated_keys([key for key, _ in pairs if key is not None], who)
            inner = [look(part) for pair in pairs for part in pair if part is not None]
            values += sum(number for number, _ in inner)
            levels += max((height for _, height in inner), default=0)
        if values > MAX_VALUES or levels > MAX_DEPTH:
            raise ConfigError(
                f"{who}: expected at most {MAX_VALUES:,} values and {MAX_DEPTH} levels, with aliases written out; "
                f"got more in line {_line(node)}"
            )
        return values, levels

    look(root)


def _line(node: "yaml.Node") -> int:
    return cast("int", node.start_mark.line) + 1


def _refuse_repeated_keys(keys: "list[yaml.Node]", who: str) -> None:
    seen: set[str] = set()
    for key in keys:
        if isinstance(key.value, str):
            if key.value in seen:
                raise ConfigError(f"{who}: expected each key once; got {key.value!r} again in line {_line(key)}")
            seen.add(key.value)
