"""A run on its nodes: what each of them does, and how several do it together."""
