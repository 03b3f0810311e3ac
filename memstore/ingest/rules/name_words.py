"""English words beside which two capitalized ones are no person's name: "I'm South African", "I'm Team Leader"."""

NO_FIRST_NAME = (
    r"(?:south|north|east|west)(?:ern)?|new|roman|greek|russian|sri|puerto|half|latin|head|senior|chief|vice|team"
    r"|product|project|data|type|full|part|pro|anti"
)
# <job> are the words for jobs of the table that this stands in.
NO_SURNAME = (
    r"lead(?:er)?|owner|member|fan|size|time|catholic|orthodox|christian|jewish|muslim|\w+(?:ican|rean|lian|dian|pean)"
    r"|asian|<job>"
)
