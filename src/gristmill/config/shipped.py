"""The recipes that come with the package, and how a recipe is found by name or path."""

from pathlib import Path

from gristmill.config.load_yaml import read_yaml_file
from gristmill.config.recipe import Recipe
from gristmill.errors import ConfigError, nearest

_DIRECTORY = Path(__file__).parent / "recipes"
STARTER = Path(__file__).parent / "starter"  # what `gristmill init` writes


def shipped_recipes() -> dict[str, Path]:
    """Return the file of each shipped recipe, by name."""
    return {path.stem: path for path in sorted(_DIRECTORY.glob("*.yaml"))}


def recipe_path(reference: str) -> Path:
    """Return the file meant by a path or by the name of a shipped recipe, with hyphens or underscores.

    An existing file wins.
    """
    path = Path(reference)
    if path.is_file():
        return path
    known = shipped_recipes()
    named = reference.replace("_", "-").lower()
    if named in known:
        return known[named]
    beside = [str(other) for pattern in ("*.yaml", "*.yml") for other in path.parent.glob(pattern)]
    close = nearest(reference, [*beside, *known])
    raise ConfigError(f"recipe: expected a file, or one of {', '.join(known)}; got {reference!r}{close}")


def find_recipe(reference: str) -> Recipe:
    """Read the recipe at a path, or the shipped one of this name."""
    text = read_yaml_file(recipe_path(reference), who=f"recipe {reference}")
    return Recipe.parse(text, source=reference)
