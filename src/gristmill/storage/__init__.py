"""Files and object stores: finding, reading and writing bytes. Knows nothing of documents, tasks or stages."""
