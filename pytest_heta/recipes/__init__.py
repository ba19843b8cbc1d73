"""The embedded recipes ``local`` and ``local-minilm``, and their parts."""
