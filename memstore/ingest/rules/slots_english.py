"""The slots of English: what people say that they are, have and plan."""

from __future__ import annotations

import re

from memstore.ingest.rules.conditions import DEGREE, ILL, ILLNESS
from memstore.ingest.rules.habits import HABITS, HABITS_OVER
from memstore.ingest.rules.partings import PARTINGS
from memstore.ingest.rules.school_words import PERSONS_AND_SCHOOLS
from memstore.ingest.rules.slotbook import Contrast, Grammar, Subject, for_a_while, table, words
from memstore.ingest.rules.slots_of_health import DIETS, HEALTH_WORDS, HEARSAY, MEDICATION, PREGNANCY
from memstore.ingest.rules.thirdperson import agreeing_verb
from memstore.ingest.rules.wishes import WISHES
from memstore.ingest.rules.word_lists import (
    AMOUNTS,
    CAR_MAKES,
    JOBS,
    MONTHS,
    NO_FIRST_NAME,
    NO_SURNAME,
    ROLES,
    WEEKDAYS,
)

_WORDS = {
    "kin": r"mother|mom|mum|father|dad|parents|sister|brother|son|daughter|wife|husband|spouse|partner|girlfriend"
    r"|boyfriend|fianc[ée]e?|aunt|uncle|cousin|grand(?:ma|mother|mum|mom|pa|father|dad|son|daughter|parents)|niece"
    r"|nephew|friend"
    r"|flatmate|room-?mate|boss|manager|colleague|co-?worker|teacher|neighbou?r|ex|(?:mother|father|sister|brother)"
    r"-in-law|best friend",
    "diet": r"(?:vegan|vegetarian|pescatarian|flexitarian|omnivore|carnivore)(?! (?:restaurant|caf[eé]|chef|cook|food"
    r"|recipe|dish))",
    "married": r"single|married|divorced|engaged|widowed|separated",
    "job": JOBS,
    "role": ROLES,
    "region": NO_FIRST_NAME,
    "people": NO_SURNAME,
    "pet": r"dog|puppy|cat|kitten|turtle|tortoise|hamster|rabbit|parrot|horse|pony|snake|guinea pig|goldfish|bird"
    r"|lizard|gecko|chicken|ferret|budgie|canary",
    "thing": r"bike|bicycle|motorbike|motorcycle|house|flat|apartment|guitar|piano|violin|keyboard|camera|boat|van"
    r"|truck|laptop|telescope|drone|scooter|cabin|allotment|kayak|television|tv|smartwatch|e-?bike|campervan",
    "day": WEEKDAYS,
    "month": MONTHS,
    "date": r"(?:(?:next|this|the following|early|late|mid) )?(?:(?:<day>)day(?:s)?(?: (?:morning|afternoon|evening))?"
    r"|(?:week|month|year|weekend|spring|summer|autumn|fall|winter)(?!\w)|(?:<month>)(?: (?:the )?\d{1,2}(?:st|nd|rd"
    r"|th)?)?)|(?:the )?\d{1,2}(?:st|nd|rd|th)(?: of)?(?: (?:<month>))?|\d{1,2} (?:<month>)|tomorrow|tonight"
    r"|\d{1,2}(?:[:.]\d\d)? ?(?:am|pm|a\.m\.|p\.m\.|o'clock)|\d{1,2}:\d\d|noon|midnight|half past \w+|\d{4}-\d\d-\d\d"
    r"|(?:christmas|easter)",
    "dates": r"<date>(?:,? (?:at |on |in |the )?(?:<date>|20\d\d)){0,3}",
    "event": r"(?:appointment|meeting|interview|exam|test|flight|train|trip|wedding|surgery|operation|check-?up|class"
    r"|lesson"
    r"|recital|concert|conference|tournament|match|race|marathon|reservation|party|presentation|defen[cs]e|viewing"
    r"|holiday|vacation|move|launch|release|rehearsal|hearing|scan|reunion|dinner|review|demo|workshop|game|call"
    r"|retreat|photo shoot|delivery|shift|visit|fitting|ceremony|session|lunch|brunch|graduation|funeral"
    r"|christening)(?: with (?-i:[A-Z])\w+)?",
    "moved": r"(?:re-?scheduled|moved|postponed|pushed(?: back)?|brought forward|shifted|changed|delayed|put off"
    r"|rebooked|bumped)",
    "shift": r"re-?scheduled?|moved?|postponed?|push(?:ed)?(?: back)?|brought forward|shift(?:ed)?|changed?"
    r"|delay(?:ed)?|put off|rebook(?:ed)?",
    "is": r"is|are|will be|takes place|starts|happens|is now|is scheduled|is set|is booked|is planned|falls|leaves",
    "measured": AMOUNTS,
    "amount": r"(?:[$€£¥] ?)?\d+(?:[.,' ]\d{3})*(?:[.,]\d{1,2})?(?: ?(?:k|thousand|million))?(?: ?(?:[%$€£¥]|(?:kg|km"
    r"|cm|m|lbs?"
    r"|ft|bpm|eur|usd|euros?|dollars?|pounds?|francs?|kilos?|percent|hours?)(?!\w)))?(?: (?:a|per) (?:year|month|week"
    r"|day|night|person))?",
    "call": r"called|named",
    "stopped": r"stopped|quit|gave up|have stopped|have quit|have given up|has stopped|has quit|has given up",
    "bad": r"do not (?:really |actually )?(?:like|enjoy|love)|hate|dislike|can not stand|cannot stand|can't stand"
    r"|loathe|detest|am not (?:really )?(?:a fan of|into|fond of|keen on)|never liked",
    "bads": r"does not (?:really )?(?:like|enjoy|love)|hates|dislikes|can not stand|cannot stand|loathes|detests",
    "good": r"love|(?<!am )(?<!are )(?<!was )(?<!were )like|enjoy|adore|really like|have come to (?:love|like|enjoy)"
    r"|have grown to (?:love|like)|am (?:really |totally )?(?:into"
    r"|fond of|keen on|a (?:big |huge )?fan of|crazy about)|started (?:liking|enjoying|loving)",
    "goods": r"loves|likes|enjoys|adores|is (?:really |totally )?(?:into|fond of|keen on|a (?:big |huge )?fan of)",
    "employed": r"work|works|am working|is working|have worked|have been working|has been working",
    "tongue": r"english|german|french|spanish|italian|portuguese|dutch|polish|russian|chinese|mandarin|cantonese"
    r"|japanese|korean|arabic|hebrew|turkish|swedish|norwegian|danish|finnish|greek|czech|hungarian|romanian|ukrainian"
    r"|hindi|urdu|bengali|vietnamese|thai|catalan|basque|irish|welsh",
}

_WORDS |= PERSONS_AND_SCHOOLS | HEALTH_WORDS
_WORDS["make"] = CAR_MAKES

_SUBJECT = Subject(
    first=r"(?:I|we)",
    inverted="",
    third=r"(?:my|our) (?:(?:little|big|older|younger|elder|twin|best|new|old|late) )?(?:<kin>)(?:'s? (?:<kin>))?(?:"
    r" (?-i:[A-Z])\w+)?"
    r"|(?!(?:It|That|This|He|She|They|There|The|A|An|My|Our|Your|His|Her|Their|I|We|You|Who|What|Nothing|Everything"
    r"|Something|Anything|Everyone|Everybody|Someone|Somebody|Nobody|Not)\b)(?-i:[A-Z][a-zà-ÿ]+)(?:'s? (?:<kin>)(?:"
    r" (?-i:[A-Z])\w+)?)?",
    adverbs=r"(?: (?:now|also|just|still|actually|recently|finally|currently|really|both|only|originally|happily"
    r"|officially|already|all|have|has|am|is|are|been))* ",
)

_ROWS = (
    # What is over comes first: "I no longer live in" has "live in" in it.
    ("former/residence", "", r"(?:I|we) (?:no longer|do not|used to) live (?:in|at|near) <V>"),
    ("former/residence!", "", r"<S:moved (?:away|out) (?:from|of)/moved (?:away|out) (?:from|of)>(?-i:(?=[A-Z]))<V>"),
    ("former/employer!", "", r"(?:I|we) (?:no longer|do not|used to) work (?:at|for|with) <V>"),
    ("former/employer!", "", r"<S:quit|left|lost|resigned from|am leaving/quit|left|lost>(?:my|the|his|her)"
     r" (?:\w+ ){0,2}?(?:job|position|role) (?:at|with|for) <V>"),
    ("former/employer!", "", r"<S:quit|resigned|have quit|have resigned/quit|resigned>(?:(?:at|from) (?:the )?)?"
     r"(?-i:(?=[A-Z]))<V>"),
    ("former/employer!", "*", r"I (?:just |have |finally |have just )?(?:quit|resigned|handed in my notice)(?=[.,!]|$"
     r"| last| today| yesterday| on| this| in)"),
    ("former/employer!", "", r"<S:was|got|were/was|got>(?:fired|laid off|let go|made redundant) (?:from|by|at) <V>"),
    ("former/job!", "", r"(?:I|we) (?:no longer|do not|used to) work as <V>"),
    ("former/job!", "", r"<S:quit|left|lost|gave up/quit|left|lost|gave up>(?:my|the|his|her) (?:\w+ ){0,2}?(?:job"
     r"|position) as <V>"),
    ("former/employer!", "*", r"<S:quit|lost|left|resigned from|have quit|have lost|have left/quit|lost|left>(?:my|the"
     r"|his|her) (?:old |current |day )?(?:job|position)"),
    ("former/employer!", "*", r"<S:got|was|have been/got|was>(?:fired|laid off|let go|made redundant)"),
    ("former/studies!", "", r"I (?:no longer study|do not study|dropped out of|quit studying|stopped studying)"
     r" (?!<school>)<V>"),
    ("former/diet", "", r"I (?:am|was) no longer (?:an? )?(?P<v><diet>)|I am not (?:an? |actually |really "
     r")*(?P<v><diet>)(?: any ?more)?"),
    ("former/marital_status", "", r"(?:I am|we are) (?:no longer|not) (?:\w+ )?(?P<v><married>)(?: any ?more)?"),
    ("former/diet!", "", r"I (?:stopped|quit) being (?:an? )?(?P<v><diet>)"),
    ("former/partner!", "", r"(?P<v>(?-i:[A-Z])\w+) (?:broke up with|split up with|left) me"),
    ("former/partner!", "*", r"my (?:girlfriend|boyfriend|partner|husband|wife) (?:broke up with|split up with"
     r"|left) me"),
    ("former/partner!", "", r"<S:broke up|split up|have broken up/broke up|split up>with <V>"),
    ("former/pet/{t}!", "*", r"(?:my|our) (?P<t><pet>)(?: (?-i:[A-Z])\w+)? (?:died|passed away|ran away)"),
    ("former/pet/{t}!", "*", r"(?:I|we) (?:lost|had to put down|gave away|had to give away) (?:my|our) (?P<t><pet>)"),
    ("former/car!", "*", r"<S:sold|got rid of|gave up|crashed|totaled|no longer have|do not have/sold|got rid of|gave"
     r" up>(?:my|our|the|his|her|a|an) (?:\w+ )?car"),
    ("former/{plan}!", "*", r"(?:the|my|our) (?P<t>(?:[\w-]+ ){0,2}?<event>(?: with (?-i:[A-Z])\w+)?)(?: (?:with|to|in"
     r"|at|on) [^,]{1,30}?)? (?:is|was|has been|got) (?:cancell?ed|called off|off(?=[.,!]|$))"),
    ("former/{plan}!", "*", r"(?:I|we) (?:have )?(?:cancell?ed|called off) (?:the|my|our) (?P<t>(?:[\w-]+"
     r" ){0,2}?<event>)(?! (?:\w+er|cake|dress|venue|band|rehearsal|list|room|flowers|tickets?|guests?)(?!\w))"),
    # Where they go to school.
    ("former/school!", "", r"<S:no longer go to|do not go to|do not attend|used to go to|graduated from|dropped out"
     r" of|left/no longer goes to|used to go to|graduated from|dropped out of|left>(?P<v><school>)(?: any ?more)?"
     r"(?! (?:at (?:\d|noon)|early|late)\b)"),
    ("school!", "", r"<S:changed|switched|transferred|moved/changed|switched|transferred|moved>(?:over )?(?:schools )?"
     r"(?:from [^,]{1,40}? )?to (?P<v><school>)"),
    ("school", "", r"<S:attend|attending|study at|studying at|enrolled at|transferred to|switched to/attends"
     r"|studies at|studying at|enrolled at|transferred to|switched to>(?P<v><campus>)"),
    ("school", "", r"<S:go|attend|attending|study at|studying at|enrolled at|enrolled in|at/goes|attends"
     r"|studies at|studying at|enrolled at|at>(?:to )?(?:school (?:at|in) )?(?P<v><school>)(?=[.,;:!]|$| (?:in|now|and"
     r"|but|since|because|near|every|again|currently|at|as|where|so|too)(?!\w))"),
    ("school", "", r"(?:I am |<S:am/is>)(?:(?:now|also|still) )?(?:an? |in )(?:[\w-]+ ){0,3}?(?:pupil|school ?(?:boy"
     r"|girl)|year \d+|\d+th grade|grade \d+) at (?P<v><school>|(?:the )?(?-i:[A-Z])[\w'-]+(?: (?-i:[A-Z])[\w'-]+)?)"),
    ("school", "", r"(?:my|our) (?:(?P<who><kin>)'s )?(?:new |current )?(?:school|university|college|uni) is (?:now )?"
     r"(?:called )?(?!<nation>)(?P<v>(?-i:[A-Z])[\w'-]+(?: [\w'-]+){0,3}?)(?=[.!,;]|$| now| in| and| but)"),
    # Where people are.
    ("residence", "", r"<S:live|living|reside|based|have lived/lives|living|resides|based>(?:in|near) <V>"),
    ("residence!", "", r"<S:moved|relocated/moved|relocated>(?:back |over |away |out |down |up |here |in )?(?:from"
     r" [^,]{1,40}? )?to <V>"),
    ("residence!", "", r"<S:settled|settled down/settled|settled down>in <V>"),
    ("residence", "", r"(?:I am|we are) (?:now |finally )?(?:home |living )?back (?:home )?in <V>"),
    ("residence", "", r"my (?:new )?home is (?:now )?(?:in )?<V>"),
    ("temporary/residence", "", r"<S:staying/staying>(?:in|at|with) <V>"),
    ("temporary/residence", "", r"<S:visiting/visiting>(?-i:(?=[A-Z]))<V>"),
    ("@residence", "", r"I am (?:\w+ )?in <V>"),
    ("hometown", "", r"(?:<S:come/is|comes>|I am (?:originally )?)(?:originally )?from <V>"),
    ("hometown", "", r"<S:grew up|was born|was raised/grew up|was born|was raised>in <V>"),
    ("hometown", "", r"my hometown is <V>"),
    # What they do.
    ("job", "", r"<S:<employed>|started(?: working| out)?|switched to working|trained/<employed>|started(?:"
     r" working)?>as <V>"),
    ("job!", "", r"<S:got|found|took|accepted|started|landed/got|found|took|accepted|started>(?:an? |my )(?:new"
     r" )?(?:job|position|role) as <V>"),
    ("job!", "", r"<S:became|become/became|become>(?P<v>an? (?:[\w-]+ ){0,2}?<job>)"),
    ("job!", "", r"<S:got|was|have been/got|was>promoted to <V>"),
    ("job!", "retired", r"(?:I|we|(?P<who>my <kin>)) (?:am |are |is |have |has )?(?:now |just |finally |recently )*"
     r"retired"),
    ("job", "", r"(?:I am (?:now )?|<S:am/is>)(?P<v>an? (?:[\w-]+ ){0,2}?<job>)(?! (?:of|to|in training))"),
    ("job", "", r"(?:I am (?:now )?|<S:am|became/is|became>)(?:an? |the )?(?P<v><role>)"),
    ("job", "", r"(?:I am (?:now )?|<S:am|work|went|became/is|works|went|became>)(?P<v>self-employed|freelance"
     r"|unemployed)"),
    ("job", "", r"my (?:new |current |day )?job is (?:being )?<V>"),
    ("employer", "", r"<S:<employed>|started(?: working)?|have started/<employed>|started(?: working)?>(?:at|for|with)"
     r" <V>"),
    ("employer!", "", r"<S:joined|switched to|moved over to/joined|switched to>(?-i:(?=[A-Z]))<V>"),
    ("employer!", "", r"<S:got|found|took|accepted|started|landed/got|found|took|started>(?:an? |my )(?:new )?(?:job"
     r"|position|role|offer) (?:at|with|from) (?!the (?:beginning|start|end|moment|age|help) )<V>"),
    ("employer", "", r"my (?:new |current )?(?:employer|company) is <V>"),
    ("studies", "", r"<S:study|studying|major in|majoring in/studies|studying|majors in>(?!for|hard|at|with|every|all"
     r"|until|abroad|in)<V>"),
    ("studies!", "", r"<S:switched|changed/switched|changed>(?:my |his |her )?(?:major|degree|studies|course)(?: from"
     r" [^,]{1,30}?)? to <V>"),
    # What they eat.
    *DIETS,
    ("diet", "", r"(?:I am (?:now )?|we are (?:now |both |all )?|<S:became|become|went|gone|turned|am going/is"
     r"|became|went|turned>)(?:an? )?(?:(?!not|no|never|neither)\w+ )?(?P<v><diet>)"),
    ("diet!", "omnivore", r"(?:I|we) (?:have )?(?:eat|started eating|am eating|been eating) meat again"),
    ("diet!", "vegetarian", r"(?:I|we) (?:still |now |also )?(?:(?:<stopped>) eating|gave up|have given up|no longer"
        r" eat|do not eat|eat no) meat(?! (?:except|apart from|unless|other than))(?: any ?more)?"),
    ("eats/{t}", "no", r"(?:I|we) (?:<stopped> eating|gave up|no longer eat|do not eat|can not eat|never eat"
     r"|(?:(?:still|also) )?eat no) <T>"),
    ("diet!", "vegetarian", r"<S:am not eating/does not eat|eats no|no longer eats>meat"),
    ("eats/{t}", "no", r"<S:am not eating/does not eat|eats no|no longer eats><T>"),
    ("eats/{t}", "yes", r"<S:eat/eats>(?!meat)<T> (?:again|now)"),
    ("eats/{t}", "yes", r"(?:I|we) (?:(?:can|may|have started to) )?(?:eat|started eating|am eating|are eating) <T>"
     r" (?:again|now)"),
    # Who they are.
    ("name", "", r"my (?:full |real |legal )?name is (?:now )?<V>"),
    ("name", "", r"I am (?P<v>(?!(?:<region>) )(?-i:[A-Z][a-zà-ÿ'-]\S*) (?!(?:<people>)(?!\w))"
     r"(?-i:[A-Z][a-zà-ÿ'-][\w'-]*))(?=[.!]*$)"),
    ("surname", "", r"my (?:new |married )?(?:surname|last name|family name) is (?:now )?<V>"),
    ("name!", "", r"<S:changed/changed>(?:my|his|her) (?:last |legal )?name to <V>"),
    ("person/{t}", "", r"(?:my|our) (?:(?:new|current) )?(?P<t>(?:(?!new |current )[\w-]+ ){0,2}?<person>)(?:'s"
     r" name)? is"
     r" (?:now )?(?:(?:called|named) )?(?!<nation>)(?P<v>(?:(?:mr|mrs|ms|miss|dr|prof|herr|frau)\.? )(?:[\w'-]+)"
     r"(?: (?-i:[A-Z])[\w'-]+)?|(?-i:[A-Z])[\w'-]+(?: (?-i:[A-Z])[\w'-]+)?)"),
    ("name", "", r"<S:am/is>called <V>|(?:my|our) (?P<who><kin>)'s name is (?P<t>(?-i:[A-Z])\w+)"),
    ("nickname", "", r"(?<!not )(?:please |just |you can |everyone |people |my friends )?(?<!not )call(?:s)? me <V>"),
    ("nickname", "", r"(?:I go by|my nickname is) <V>"),
    ("amount/{t}", "", r"(?:(?:my|our) (?:new |current )?(?P<t>(?:[\w-]+ ){0,2}?<measured>)|^(?P<t><measured>)"
     r"|(?<!\w)the (?P<t>(?:[\w-]+ ){0,2}?budget)) (?:is|was raised to|was cut to"
     r"|went up to|went down to|comes to) (?:now |currently |about |up to |at most )?(?P<v><amount>)"),
    ("amount/{t}~", "", r"(?:I|we|they) (?:have )?(?:raised|increased|cut|lowered|reduced|changed) (?:my|our|the)"
     r" (?P<t>(?:[\w-]+ ){0,2}?<measured>)(?: from [^;!?]{1,30}?)? to (?P<v><amount>)"),
    ("age", "", r"<S:am|turned|just turned/is|turned>(?P<v>\d{1,3}) years? old"),
    ("age", "", r"(?!(?:<measured>) )<S:am|turned|just turned/is|turned>(?P<v>(?:1[01]|[1-9])?\d)(?= (?:now|today"
        r"|last|this|yesterday|and)|[,.](?!\d)|!|$)"),
    ("birthday", "", r"my birthday is (?:actually )?(?:on )?(?:the )?<V>"),
    ("birthday", "", r"I was born on (?:the )?<V>"),
    ("marital_status", "", r"(?:I am (?:now )?|we are (?:now )?|<S:got|gotten|become/is|got|gotten>)(?:(?!not|no"
     r"|never|neither|getting|about|almost|nearly|soon)\w+ )?(?P<v><married>)(?! to [^,]{1,9} idea)"),
    ("partner", "", r"<S:dating|married to|engaged to|seeing|together with/dating|married to|engaged to|seeing"
     r"|together with>(?-i:(?=[A-Z]))(?P<v>\w+)"),
    ("partner", "", r"my (?:new )?(?:partner|girlfriend|boyfriend|wife|husband|fianc[ée]e?) is (?:called"
     r" )?(?-i:(?=[A-Z]))(?P<v>\w+)"),
    ("phone", "", r"my (?:new )?(?:phone|mobile|cell|telephone)(?: number)? is (?:now )?(?P<v>\+?\d[\d /()-]{4,20}\d)"),
    ("email", "", r"my (?:new |work |private )?e-?mail(?: address)? is (?:now )?(?P<v>[\w.+-]+@[\w-]+\.[\w.-]*\w)"),
    ("address", "", r"(?:my|our) (?:new |home )?address is (?:now )?<V>"),
    ("address", "", r"I live (?:at|on) (?P<v>\d+[a-z]? [^,.;!?]{3,40}|[^,.;!?]{3,40}? \d+[a-z]?)(?=[,.;!?]|$)"),
    ("language/{t}", "yes", r"<S:speak/speaks>(?:fluent |some |good |a little )?(?P<t><tongue>)"),
    # How they want to be answered.
    ("answers/language", "", r"(?:please |from now on,? (?:please )?|always )?(?:answer|reply|respond|write|talk|speak)"
     r" (?:to me |me )?(?:only )?in (?P<v><tongue>)"),
    ("answers/length", "", r"(?:please |from now on,? (?:please )?|always )?(?:keep|make) (?:your|the) (?:answers"
     r"|replies|responses) <V>"),
    ("answers/length", "", r"I (?:prefer|want|like) (?P<v>short|long|brief|detailed|concise)(?:er)? (?:answers|replies"
     r"|responses)"),
    ("answers/units", "", r"(?:please |from now on,? (?:please )?|always )?(?:use|give me|answer in) (?P<v>metric"
     r"|imperial)(?: units)?"),
    # What they like, and cannot have.
    ("favourite/{t}", "", r"my (?:new |all-time |absolute |current )?favou?rite (?P<t>[a-z]+(?: [a-z]+)?) (?:is|are"
     r"|has become|used to be) (?:now )?<V>"),
    ("allergy/{t}", "yes", r"(?:I am |<S:am/is>)not (?:only|just|merely|simply|solely) allergic to <T>"),
    ("allergy/{t}", "no", r"(?:I am |<S:am/is>)(?:no longer|not)(?: (?:really|actually|even|also|at all|in fact|too"
     r"|currently|personally|now))? allergic to <T>"),
    ("allergy/{t}", "no", r"I (?:have )?outgr(?:ew|own) my (?P<t>\w+)(?: allergy)"),
    ("allergy/{t}", "no", r"<S:do not have|have no/does not have"
     r"|has no>(?:an? )?(?:\w+ )?(?P<t>\w+) allergy(?: any ?more)?"),
    ("allergy/{t}", "yes", r"it is (?:actually |really )?(?:the )?(?P<t>(?!not\b|what\b)[\w'-]+"
     r"(?: (?!that\b|which\b)[\w'-]+)?) (?:that |which )?(?:I am|(?P<who>my <kin>) is) allergic to"),
    ("allergy/{t}", "yes", r"(?:I am |<S:am|became|become|have/is|became>)(?:(?!not|no|never|neither"
     r"|hardly)\w+ )?allergic to <T>"),
    ("allergy/{t}", "yes", r"(?:I have |I developed |<S:developed/has|developed>)an? (?:\w+ )?(?P<t>\w+) allergy"),
    ("health/{t}", "no", rf"<S:no longer have|do not have|have no/no longer has|does not have|has no>{DEGREE}"
     rf"(?P<t>{ILLNESS})"),
    ("health/{t}", "no", rf"(?:I am |<S:am/is>)(?:no longer|not) (?:an? )?(?P<t>{ILL})"),
    ("health/{t}", "yes", rf"<S:have|have got/has>{DEGREE}(?P<t>{ILLNESS})"),
    ("health/{t}", "yes", rf"(?:I am |<S:am/is>)(?:an? )?(?P<t>{ILL})"),
    *MEDICATION,
    *PREGNANCY,
    ("likes/{t}", "no", r"(?:I|we) (?:no longer (?:like|love|enjoy)|have gone off|went off|have lost interest"
     r" in|stopped liking|stopped enjoying|have stopped liking) <T>"),
    ("likes/{t}", "no", r"<S:<bad>/<bads>><T>"),
    ("likes/{t}", "no", r"I (?:<bad>) <T>"),
    ("likes/{t}", "yes", r"(?:<S:<good>/<goods>>|I am (?:really |now )?(?:into|fond of|a fan of) )<T>"),
    ("smoking", "no", r"(?:I|we) (?:(?:<stopped>)|no longer|do not|never)(?: smoking| smoke| cigarettes)(?: any"
     r" ?more)?"),
    ("smoking", "no", r"I am (?:now )?a non-?smoker"),
    ("smoking", "yes", r"(?:<S:smoke|am smoking|started smoking|smoking/smokes>(?=again|a |every|about|\d|now|and|but"
     r"|cigar|$|[.,!])|I am a smoker|I (?:have )?started smoking|I smoke$)"),
    ("drinking", "no", r"(?:I|we) (?:(?:<stopped>)|no longer|do not|never)(?: drinking| drink)(?: (?:alcohol|any"
     r" ?more))?(?=[.,!]|$| any| since| at all| and)"),
    ("drinking", "no", r"I (?:am|have gone|have been) sober|I gave up alcohol"),
    ("drinking", "yes", r"(?:I|we) (?:drink|am drinking|started drinking) (?:alcohol|again|wine|beer)"),
    # What they have.
    ("pet/{t}", "yes", r"<S:have|got|adopted|bought|own|rescued/has|got|adopted|bought|owns|rescued>(?:an? )(?:\w+"
     r" ){0,2}?(?P<t><pet>)(?!'s| (?:phobia|allergy|hair))"),
    ("petname/{t}", "", r"(?:my|our) (?:new )?(?P<t><pet>)(?: is (?:<call>)|'s name is) (?P<v>\w+)"),
    ("car", "", r"(?:<S:drive/drives>|<S:bought|got|own/bought|got|owns>(?=[^,.]{1,30}(?<!\w)<make>))(?:an? )(?:new "
     r"|used |second-hand |old |red |blue |white |black )*(?-i:(?=[A-Z]))(?P<v>[\w-]+(?: (?-i:[A-Z\d])[\w-]*)*)"
     r"(?= (?:now|to|since|last|yesterday|and|instead)|[,.!]|$)"),
    ("car", "", r"my (?:new )?car is an? <V>"),
    ("owns/{t}", "no", r"<S:sold|gave away|lost|got rid of|no longer have|do not have/sold|gave away>(?:my|our|the|his"
     r"|her|an?) (?:\w+ )?(?P<t><thing>)"),
    ("owns/{t}", "yes", r"<S:have|own|bought|got/has|owns|bought|got>(?:an? )(?:\w+ ){0,2}?(?P<t><thing>)"),
    # What they plan, and by when.
    ("deadline/{t}~", "", r"(?:the|my|our) deadline(?: for (?:the |my |our )?(?P<t>[a-z]+(?: [a-z]+)?))? (?:was|is|has"
     r" been|got|is being) (?:<moved>) (?:from <dates> )?(?:to|until|till) (?:the )?(?P<v><dates>)"),
    ("deadline/{t}", "", r"(?:the|my|our) deadline(?: for (?:the |my |our )?(?P<t>[a-z]+(?: [a-z]+)?))? is (?:now "
     r"|actually )?(?:on |at |in |by )?(?P<v><dates>)"),
    ("deadline/{t}", "", r"(?:the|my|our) (?P<t>[a-z]+(?: [a-z]+)?) (?:is|are) due (?:on |by |at )?(?P<v><dates>)"),
    ("{plan}~", "", r"(?:the|my|our) (?P<t>(?:[\w-]+ ){0,2}?<event>(?: with (?-i:[A-Z])\w+)?)(?: (?:with|to|in|at|on"
     r"|for|from) [^,]{1,30}?)? (?:was|is|has been|has|got|is being|had to be)"
     r" (?:now )?(?:been )?(?:<moved>) (?:from [^,]{1,30}? )?(?:to|until|till|by) (?P<v><dates>)"),
    ("{plan}~", "", r"(?:I|we|they|he|she) (?:have |has |had to |just )?(?:<shift>) (?:the date (?:of|for) )?(?:the"
     r"|my|our) (?P<t>(?:[\w-]+ ){0,2}?<event>)(?: back| forward)?"
     r"(?: (?:with|to|in|at|on|for) [^,]{1,30}?)? (?:from [^,]{1,30}? )?(?:to|until|till) (?P<v><dates>)"),
    ("{plan}", "", r"(?:the|my|our) (?P<t>(?:[\w-]+ ){0,2}?<event>(?: with (?-i:[A-Z])\w+)?)(?: (?:with|to|in|at|for)"
     r" [^,]{1,30}?)? (?:<is>) (?:now |actually |set for |scheduled for )?(?:on |at |in |for )?"
     r"(?:the )?(?P<v><dates>)"),
    ("{plan}", "", r"(?:the|my|our) (?:new )?date (?:of|for) (?:the|my|our) (?P<t>(?:[\w-]+ ){0,2}?<event>) is (?:now"
        r" )?(?:on )?(?:the )?(?P<v><dates>)"),
    ("+{plan}", "", r"(?:I|we) (?:have|have got|booked|scheduled|made) (?:an?|the|my|our) (?P<t>(?:[\w-]+"
     r" ){0,2}?<event>)(?: (?:with|to|in|at|for) [^,]{1,30}?)? (?:on |at |in |for )?(?:the )?(?P<v><dates>)"),
    ("plan/trip to {t}", "", r"(?:I|we) (?:am |are )?(?:fly|flying|travel|travell?ing|going|driving|taking the train)"
     r" to (?P<t>(?-i:[A-Z])\w+) (?:on |in |at |for )?(?P<v><dates>)"),
)  # fmt: skip

_ENDS = (
    r"and|but|because|since|with|for|now|again|last|next|this|these|those|in|on|at|from|until|after|before|when|while"
    r"|so"
    r"|which|who|where|that|if|too|also|any ?more|though|however|instead|not|by|near|just|right|already|yet|ever|only"
    r"|except|than|more|very|a lot|so much|today|tomorrow|yesterday|\d+ \w+ ago|(?:a|two|three|four) \w+ ago|as|or"
    r"|every|over|under|either|as well|together|permanently|full-time|part-time|these days|again|full"
)

# "I hope I am not allergic", but not "I hope you know that I am", nor "I do not think I told you that I am".
_OF_ME = (
    r"(?:that )?(?:I|we|my|our)(?! (?:(?:have|ever|already) )*(?:told|tell|said|say|mention(?:ed)?|explain(?:ed)?|wrote"
    r"|written)(?!\w))"
)

ENGLISH = Grammar(
    rules=table((*PARTINGS, *HABITS_OVER, *_ROWS, *HABITS), _SUBJECT, _ENDS, _WORDS),
    unreal=words(
        r"would|could|should|might|may be|maybe|perhaps|probably|possibly|almost|nearly|wonder|thinking (?:of|about)"
        r"|considering|considered|not sure|hope to|want to|wants to|going to move|plan to|planning to|dream of"
        r"|dreamed|dreamt|pretend\w*|joking|just kidding|tempted|used to be like|as if|like to|'d"
        rf"|(?:(?:do|does|did) not (?:think|believe|suppose|say|mean|claim)|never (?:said|claimed|meant)|used to"
        rf" (?:think|believe)|doubt(?:s|ed)?|hop(?:e|es|ed|ing)|pray(?:s|ed|ing)?|lied|forg[eo]t(?:ten)?"
        rf"|den(?:y|ies|ied)|(?:nobody|no one) (?:says|thinks|believes|claims)) {_OF_ME}"
        r"|not (?:that I|true)|untrue|can not say that|ruled out|some say|they (?:think|say|believe)|makes? sure"
        r"|either (?:\w+ ){1,4}or"
    ),
    doubtful=words(
        r"if|unless|suppose|supposing|imagine|imagining|hypothetically|wish|what if|let's say|let us say|in theory"
        r"|(?<!no )(?<!not )(?:kidding|joking)|/s[.!]*$|assuming|^assume"
        r"|for the sake of (?:the )?argument|provided (?:that )?I|pretend"
        r"|in (?:the|this|my) (?:story|novel|game|book|film|movie|dream)|my character|in case"
        r"|whether|role-?play|(?:just|only|I am|I'm) (?:kidding|joking)"
    ),
    reported=words(
        r"(?:he|she|they|(?<!I )(?-i:[A-Z])[a-z]+|(?:my|our|the|an?) (?:\w+ )?\w+"
        r"|everyone|people|someone|somebody|who) (?:said|says|told|tells|thinks"
        r"|thought|claims|claimed|believes|believed|wrote|writes|texted|asked|asks|announced|mentioned|insists|swears)"
        r"|according to|rumou?r|apparently|supposedly|allegedly|I heard"
    ),
    subordinate=words(
        r"(?:where|who|which|when|once|before|until|while|than|as|how|why|what|after|since|whether|if|the \w+ that"
        r"|the (?:day|time|year|place|city|town|reason|house|company|job|man|woman|person|one|first|last)"
        r"|everything|things|all that|did|do|does|have|are|were|said|says|thought|thinks"
        r"|believes|claims|insists|suspects|told (?:me|us)"
        r"|of|from|with|without|by|near|for|about|against|like) *$"  # "the mother of Jonas is"
    ),
    temporary=for_a_while(
        r"this (?:week|weekend|month|summer|winter|spring|autumn|fall|semester)|for (?:the|this|a|an|one|two|three|a"
        r" few|a couple of|\d+) (?:\w+ )?(?:day|night|week|weekend|month|summer|winter|semester|moment|time being)s?"
        r"|at the moment|for now|right now|temporarily|today|tonight|just visiting|visiting|until (?:\w+ )?\w+"
        r"|over the (?:holidays|weekend|summer)|while (?:my|the|our)|during|on (?:holiday|vacation|a business trip)"
        r"|on a visit|currently in|interim|for lent|this january|dry january|house-?sitting"
    ),
    corrects=words(
        r"^(?:no|wait|sorry|oops|correction|i mean|i meant|actually|my mistake|my bad|typo|i misspoke|i was wrong|to"
        r" correct myself)"
    ),
    meant=re.compile(
        r"(?:^|\b)(?:(?:sorry|no|oops|wait|correction|actually|my mistake|typo)[,:;.!—– -]+)*(?:i (?:meant|mean)|make"
        r" that|it's actually|it is actually|actually it's|actually it is|correction:|i meant to say"
        r"|(?:that|this|it) (?:was|is) (?:a typo|wrong|a mistake|an error|my mistake|not right|incorrect)[,;:.!—– -]+"
        r"(?:it is|it was|it should be|it should have been))"
        r" (?:on |at |in |the )?(?P<v>[^,.;!?]{1,40}?)(?:,? (?:not|and not|instead of) [^.;!?]{1,40})?[.!]*$",
        re.IGNORECASE,
    ),
    also=words(r"also|too|as well|on the side|second|part[- ]time|additionally|besides|side job|side gig|volunteer"),
    no_value=words(
        r"^(?:it|this|that|these|those|he|she|they|him|her|them|you|your|how|what|when|where|why|who|being able"
        r"|to (?:see|hear|know"
        r"|think|say|help|be)|the (?:idea|way|sound|look|thought|feeling|fact|same|part|view|one|new|picture|photo"
        r"|first|second|last)|my|our|his|some|something|anything|everything|nothing|one|there|here|us|me|a lot|all"
        r"|everyone|people|each|any|\w+'s)"
    ),
    article=words(r"^(?:an?|the|some|any|my|our|being|working as|to)(?= )"),
    next_clause=re.compile(
        r"\s*[,;:—–]\s+|\s[-–—]\s|\s+(?:and|but|so|because|plus|though|although)\s+(?=(?:I(?! (?:(?:have|just|finally"
        r"|recently|both|then|also|officially) )*(?:broken?|split|separated|parted|called it|are|were)\b)"
        r"|we|my|our|he|she|they|it|now|then|the|"
        r"also|started|moved|works?|joined|have|has|am|is|lives?|speaks?|drives?)\b)",
        re.IGNORECASE,
    ),
    asks=words(
        r"^(?:(?:please|pls|kindly|now|then|and|so|just|hey|hi|can you|could you|would you|i want you to"
        r"|i need you to|help"
        r" me)[, ]+)*(?:(?:write|draft|compose|type)(?! (?:to me |me )?(?:only )?in )|translate|say|tell|ask|e-?mail"
        r"|text"
        r"|message|remind|book|reserve|order|schedule|cancel|summari[sz]e|rewrite|proofread|correct|fix|pretend|let"
        r"|imagine|play|plan|find|search|look up|suggest|recommend|list|generate|create|make(?! (?:your|the) (?:answers"
        r"|replies|responses)))"
    ),
    hearsay=HEARSAY,
    wishes=table(WISHES, _SUBJECT, _ENDS, _WORDS),
    contrasts=(
        # "My number has changed, it's 07700 900123 now" says it of the number.
        Contrast(
            re.compile(
                r"(?<!\w)(?P<what>my (?:[\w-]+ ){0,2}?(?:number|e-?mail|e-?mail address|address|surname|last name"
                r"|employer|salary|rent|weight))(?: has|'s)? (?:just |recently )?changed"
                r"(?:\s*[,:;—–-]+\s*|\s+(?:and|to) )(?:(?:it|that)(?:'s| is) )?(?=\S)",
                re.IGNORECASE,
            ),
            r"\g<what> is ",
        ),
        # "I was wrong about the test: it was on 27 March" says it of the test.
        Contrast(
            re.compile(
                r"(?<!\w)I (?:was|am|got it|had it|have been) (?:wrong|mistaken|mixed up|confused) (?:about|on|with)"
                r" (?P<what>(?:the|my|our)"
                r" [\w'-]+(?: [\w'-]+){0,3}?)(?:\s*[,:;.—–-]+\s*|\s+(?:and|because) )(?:it|that|this|she|he)(?:'s|"
                r" is| was) ",
                re.IGNORECASE,
            ),
            r"\g<what> is ",
        ),
        Contrast(
            re.compile(
                r"(?<!\w)(?P<do>do|does) not (?P<verb>\w+) (?P<prep>in|at|as|for|with|from|on|to"
                r"|near) [^,;]{1,40}?,? but (?:rather |actually )?(?=(?P=prep) )",
                re.IGNORECASE,
            ),
            lambda found: f"{found['verb'] if found['do'] == 'do' else agreeing_verb(found['verb'])} ",
        ),
        Contrast(
            re.compile(
                r"(?<!\w)not (?P<prep>in|at|as|for|with|from|on|to|near|until) [^,;]{1,40}?,? but (?:rather "
                r"|actually |only"
                r" )?(?=(?P=prep) )|(?<!\w)not (?-i:[A-Z])[\w-]+,? but (?:rather |actually )?(?-i:(?=[A-Z]))",
                re.IGNORECASE,
            ),
            "",
        ),
    ),
)  # fmt: skip
