"""Engines host the operators: `local` in this process, `spark` on Spark. They never import each other."""
