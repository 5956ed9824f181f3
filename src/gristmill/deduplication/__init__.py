"""Deduplication: exact, fuzzy, by meaning, by lines; removal, reports, indices of earlier datasets, decontamination.

| to know                                   | read                                                          |
|-------------------------------------------|---------------------------------------------------------------|
| the stages, and the order of their steps  | `exact_deduplication`, `fuzzy_deduplication`, ...             |
| what all of them do                       | `deduplication_stage`, `searched_documents`                   |
| the workflows: reader, stage, writer      | `exact`, `fuzzy`, `semantic`, `text_semantic`, ...            |
| what a step does with a batch             | `exact_stages`, `sketches`, `clusters`, `candidates`, ...     |
| which documents stay                      | `keep_policy`                                                 |
| what the steps leave for each other       | `files_between`, `documents` (a document is known by number)  |
| what is left for the user                 | `findings`, `report`, `dataset_index`                         |

Users know them from `gristmill.stages.deduplication` and `gristmill.stages.text.deduplication`; those paths lead here.
"""
