"""Facts by rules, without a model: statements in the third person, with dates, a type, a worth. All of it pure."""
