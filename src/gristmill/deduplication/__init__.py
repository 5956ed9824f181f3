"""Deduplication: exact, fuzzy, by meaning, by lines; removal, reports, indices of earlier datasets, decontamination.

| to know                                   | read                                                          |
|-------------------------------------------|---------------------------------------------------------------|
| what a user calls                         | `exact`, `fuzzy`, `semantic`, `text_semantic`, ...          |
| the order of the steps                    | `exact_search`, `fuzzy_search`, `semantic_search`             |
| what a step does with a batch             | `exact_stages`, `sketches`, `clusters`, `candidates`, ...     |
| which documents stay                      | `keep_policy`                                                 |
| what the steps leave for each other       | `files_between`, `documents` (a document is known by number)  |
| what is left for the user                 | `findings`, `report`, `dataset_index`                         |

Users know the workflows from `gristmill.stages.deduplication` and `gristmill.stages.text.deduplication`; those paths
lead here.
"""
