"""Words of English slots for whom somebody has a part in their life, and for schools by their names."""

PERSONS_AND_SCHOOLS = {
    # Who has a part in somebody's life that another may take: "my new maths teacher is called …".
    "person": r"teacher|tutor|coach|trainer|instructor|doctor|gp|dentist|therapist|counsell?or"
    r"|physio(?:therapist)?|vet|lawyer|accountant|boss|manager|supervisor|professor|advis[eo]r|mentor|landlord"
    r"|landlady|headteacher|principal|hairdresser|nanny|babysitter|childminder|team lead|line manager",
    # What they may be instead of somebody: "my boss is Canadian"; Julian and Kilian are names.
    "nation": r"(?!\w*(?:ju|ki|li|mi|gi)l?lian\b)(?:<tongue>|<people>|american|canadian|swiss|indian|austrian|belgian"
    r"|australian|mexican|brazilian|african|asian|european|ill|sick|on|in|from|at|not|very|really|so|too|strict|nice"
    r"|great|good|away|closed|open)\b",
    # A school by its name: "Seefeld school", "the University of Bern", and not "a good school" or "high school".
    "schooling": r"school|college|university|uni|academy|institute|polytechnic|gymnasium|lyc[ée]e|high|primary"
    r"|secondary|kindergarten",
    "anyschool": r"primary|elementary|secondary|high|middle|grammar|boarding|public|private|state|art|music|law"
    r"|medical|med|business|night|sunday|summer|driving|drama|dance|language|ski|cooking|swimming|riding|flight|acting"
    r"|film|beauty|nursing|trade|grad|vocational|local|same|new|old|good|bad"
    r"|big|small|nice|different|another|an?|my|your|our|his|her|their|this|that|the|school|university|college|uni|what"
    r"|which|to|bed|church|work|community|junior|senior|international|catholic|bilingual|technical|graduate",
    "school": r"(?:the )?(?!(?:<anyschool>)\b)[\w'-]+(?: (?!(?:in|at|to|and|or|with|on|for|near|my|your|a|every"
    r"|after|before)\b)[\w'.-]+){0,3}? (?:<schooling>)(?:(?: of)?(?: (?-i:[A-Z])[\w'-]+){1,3})?"
    r"|(?:the )?(?:university|college|academy|institute|school) of (?-i:[A-Z])[\w'-]+(?: (?-i:[A-Z])[\w'-]+)?"
    r"|(?:the )?(?:gymnasium|lyc[ée]e|uni|kantonsschule|eth|tu|university|school) (?-i:[A-Z])[\w'-]+|(?-i:ETH|EPFL"
    r"|MIT|UCL|LSE|NYU|UCLA)(?: (?-i:[A-Z])[\w'-]+)?|(?-i:Harvard|Yale)",
    # Towns too: who moved to Oxford or goes there every week has no school for that.
    "campus": r"(?-i:Oxford|Cambridge|Stanford|Princeton)(?! (?-i:[A-Z]))",
}  # fmt: skip
