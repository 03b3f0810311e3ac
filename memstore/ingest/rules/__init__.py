"""Facts by rules, without a model: a rule book, the grammar of the third person, and dates. All of it pure."""
