"""Words that several tables of the rules have in common: days, months, jobs, amounts, and what looks like a name.

Each is the inside of a group of a pattern that is matched without regard to case.
"""

WEEKDAYS = r"mon|tues|wednes|thurs|fri|satur|sun"  # before "day"
MONTHS = r"january|february|march|april|may|june|july|august|september|october|november|december"
# What looks like a name beside "I am", and is none: "South African".
NO_FIRST_NAME = (
    r"(?:south|north|east|west)(?:ern)?|new|roman|greek|russian|sri|puerto|half|latin|head|senior|chief|vice|team"
    r"|product|project|data|type|full|part|pro|anti"
)
# Of two words the second; <job> are the words for jobs of the table that this stands in.
NO_SURNAME = (
    r"lead(?:er)?|owner|member|fan|size|time|catholic|orthodox|christian|jewish|muslim|\w+(?:ican|rean|lian|dian|pean)"
    r"|asian|<job>"
)
# What is measured or counted of somebody: its number is an amount, and changes. "Rent is 90" tells no age.
AMOUNTS = (
    r"budget|salary|wages?|income|pay|pension|rent|mortgage|deposit|price|costs?|fee|savings|limit|total|weight|height"
    r"|(?:shoe|dress|ring|shirt|trouser) size|size|blood pressure|resting heart rate|heart rate|pulse|temperature|score"
    r"|grade|average|level|distance|commute|capacity|head ?count"
)
GERMAN_AMOUNTS = (
    r"\w*budget|\w*gehalt|\w*lohn|\w*einkommen|\w*rente|\w*miete|kaution|\w*preis|\w*kosten|gebühr|ersparnisse|\w*limit"
    r"|\w*gewicht|größe|körpergröße|\w*größe|blutdruck|ruhepuls|puls|temperatur|punktzahl|note|schnitt|arbeitsweg"
    r"|\w*rate"
)
JOBS = (
    r"\w*(?:nurse|teacher|doctor|engineer|developer|programmer|designer|lawyer|writer|author|journalist|editor"
    r"|chef|cook|baker|barista|waiter|waitress|musician|manager|accountant|scientist|researcher|professor|driver"
    r"|pilot|illustrator|\w{3,}(?:ologist|ician|grapher)|consultant|analyst|architect|therapist|counsell?or|dentist"
    r"|pharmacist|plumber|carpenter|farmer|librarian|translator|producer|director|actor|actress|firefighter|soldier"
    r"|paramedic|midwife|freelancer|secretary|receptionist|cashier|gardener|hairdresser|barber|bartender|student"
    r"|tutor|coordinator|assistant|mechanic|janitor|judge|surgeon|physiotherapist|recruiter)"
)
GERMAN_JOBS = (
    r"\w*(?:lehrer|arzt|ärztin|ingenieur|entwickler|architekt|designer|pfleger|krankenschwester|köch|koch|autor"
    r"|fotograf|anwalt|anwält|verkäufer|kellner|erzieher|bäcker|gärtner|förster|student|journalist|musiker"
    r"|schauspieler|richter|pilot|fahrer|mechaniker|tischler|maler|buchhalter|berater|hebamme|apotheker|psychologe"
    r"|programmierer|polizist|(?:team|abteilungs|projekt|stations)leiter|geschäftsführer|bademeister|friseur"
    r"|informatiker)(?:in)?"
)
ROLES = (
    r"(?:team|tech|technical|project|squad) lead(?:er)?|(?:deputy )?head of [a-z]+|department head|head (?:nurse|chef"
    r"|teacher|coach)"
    r"|c[etfo]o|managing director|vice president|co-founder|founder|chair(?:man|woman|person)?|principal"
)
# What people buy and get is a car if it is called so: "I bought a Kindle" ends no Golf.
CAR_MAKES = (
    r"volkswagen|vw|golf|polo|passat|tiguan|touran|beetle|audi|bmw|mercedes|benz|opel|vauxhall|corsa|astra|ford|fiesta"
    r"|focus|mustang|toyota|prius|yaris|corolla|rav4|honda|civic|accord|hyundai|kia|mazda|nissan|leaf|micra|mini|fiat"
    r"|panda|peugeot|renault|clio|twingo|zoe|citro[eë]n|dacia|duster|seat|ibiza|leon|cupra|skoda|škoda|octavia|fabia"
    r"|enyaq|volvo|saab|tesla|porsche|jaguar|land rover|range rover|lexus|subaru|suzuki|mitsubishi|chevrolet|chevy|jeep"
    r"|dodge|chrysler|cadillac|buick|gmc|alfa romeo|lancia|ferrari|lamborghini|maserati|bentley|rolls-royce|polestar"
    r"|byd|smart|lada|infiniti|acura|lincoln|pontiac|genesis|rivian|lucid"
)
