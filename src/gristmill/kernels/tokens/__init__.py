"""Words as other tools cut them: rules as data, a plain definition of each tokeniser, and a compiled memory of them."""
