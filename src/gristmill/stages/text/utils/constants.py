"""`regex_url`, the pattern of a URL, under the path users know."""

import re

from gristmill.stages.text.filters.heuristic.page import URL

__all__ = ["regex_url"]

regex_url = re.compile(URL)
