"""What readers and writers of every modality share. Formats are with their modality, such as `stages/text/io`."""
