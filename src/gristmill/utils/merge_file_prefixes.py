"""A door: joining Megatron's files, as a function and as `python -m gristmill.utils.merge_file_prefixes`."""

import argparse

from gristmill.stages.text.io.writer.megatron import merge_file_prefixes

__all__ = ["merge_file_prefixes"]


def main() -> None:
    """Join the pairs of a directory."""
    parser = argparse.ArgumentParser(prog="merge_file_prefixes", description=merge_file_prefixes.__doc__)
    parser.add_argument("--input-dir", required=True, help="where the pairs of .bin and .idx are")
    parser.add_argument("--output-prefix", required=True, help="path of the joined pair, without .bin and .idx")
    options = parser.parse_args()
    merge_file_prefixes(options.input_dir, options.output_prefix)


if __name__ == "__main__":
    main()
