"""Messages → facts as they are said → what they mean for the known ones; and what people do to facts by hand."""
