"""From the bytes of a page to its text: what every extractor shares."""
