"""The tables of the rules: what people say when they tell something lasting, and what it is a fact of.

`<kin>` in a pattern stands for a list of words that many rules share. Each pattern begins where its table says, is
matched without regard to case, and the first row that fits decides. Patterns see a few hundred characters at most.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from memstore.ingest.rules.conditions import DEGREE, HAS, ILLNESS, IS
from memstore.ingest.rules.medicines import GERMAN_MEDICINE, MEDICINE
from memstore.ingest.rules.word_lists import (
    AMOUNTS,
    GERMAN_AMOUNTS,
    JOBS,
    MONTHS,
    NO_FIRST_NAME,
    NO_SURNAME,
    ROLES,
    WEEKDAYS,
)

FOODS = (
    r"meat|fish|seafood|shellfish|pork|beef|dairy|milk|cheese|lactose|gluten|wheat|bread|eggs?|nuts?|peanuts?|almonds?"
    r"|sugar|fruit|soy|sesame|alcohol|wine|beer|coffee|caffeine|chocolate|salt|spicy"
)

KIN = (
    r"mother|mom|mum|mama|father|dad|papa|parents|sisters?|brothers?|siblings?|sons?|daughters?|kids?"
    r"|child(?:ren)?|twins?|baby|wife|husband|spouse|partner|girlfriend|boyfriend|fianc[ée]e?|aunts?|uncles?|cousins?"
    r"|grand(?:ma|mother|mum|mom|pa|father|dad|son|daughter|parents|kids|child|children)|nieces?|nephews?|family"
    r"|friends?"
    r"|room-?mate|flat-?mate|boss|manager|mentor|colleagues?|co-?workers?|teacher|coach|neighbou?rs?|(?:mother|father"
    r"|sister|brother)-in-law|in-laws|step\w+|ex"
)
PETS = (
    r"dogs?|pup|pupp(?:y|ies)|cats?|kittens?|turtles?|tortoises?|hamsters?|rabbits?|parrots?|horses?|pony"
    r"|snakes?|guinea pigs?|gold-?fish|birds?|pets?|lizards?|geckos?|chickens?|retrievers?|shepherds?|labradors?"
)
GERMAN_KIN = (
    r"\w*mutter|mama|\w*vater|papa|\w*schwestern?|\w*br[uü]der|geschwister|eltern|\w*tante|\w*onkel|oma"
    r"|opa|cousine?|frau|mann|partner(?:in)?|freund(?:in)?|sohn|tochter|kinder|hund|hündin|katze|kater|chef(?:in)?"
    r"|kolleg(?:e|in)|nachbar(?:in)?"
)


class Rule(NamedTuple):
    """A kind of fact, how far it is to be trusted, and what a clause that says it looks like.

    `about_named`: the clause begins with the name of whom it is about.
    """

    type: str
    confidence: float
    pattern: re.Pattern[str]
    about_named: bool = False


def _table(*rows: tuple[str, float, str]) -> tuple[Rule, ...]:
    return tuple(
        Rule(
            kind,
            confidence,
            re.compile(rf"(?:{_spelled_out(pattern)})\b", re.IGNORECASE),
            pattern.startswith("<name> "),
        )
        for kind, confidence, pattern in rows
    )


def _spelled_out(pattern: str) -> str:
    return _WORD.sub(lambda word: _spelled_out(_WORDS[word[1]]), pattern)


# Words that many rules share, written <so> in their patterns. --------------------------------------------------------
_WORD = re.compile(r"<(\w+)>")
_WORDS = {
    "food": FOODS,
    "role": ROLES,
    "amount": AMOUNTS,
    "betrag": GERMAN_AMOUNTS,
    "weekday": WEEKDAYS,
    "month": MONTHS,
    "Month": MONTHS.title(),
    "name": r"(?-i:[A-Z])[\w'’.-]*",
    "first": r"(?-i:[A-ZÄÖÜ][a-zäöüß]+)",
    "full": r"(?!(?:<region>) )(?-i:[A-ZÄÖÜ][a-zà-ÿ'-]\S*) (?!(?:<people>)(?!\w))(?-i:[A-ZÄÖÜ][a-zà-ÿ'-]\S*)",
    "region": rf"{NO_FIRST_NAME}|not|so|very|the|an?|also|just|from|in|at",
    "people": NO_SURNAME,
    "a": r"(?:an?|the|my|our|some|another|one|two|three|four|five|six|\d+|several|many|lots of|no|any)(?: \w+){0,3}?",
    "trait": r"vegan|vegetarian|pescatarian|flexitarian|kosher|halal",
    "drug": r"\w+(?:cillin|profen|mycin|cycline|oxacin|statin|prazole|codone|codeine)|codeine|morphine|aspirin"
    r"|paracetamol|acetaminophen|nsaids?|antibiotics|painkillers|blood thinners|sulfa\w*|latex|lactose",
    "state": r"single|married|divorced|engaged|widowed|pregnant|retired|unemployed|self-employed|left-handed|adopted"
    r"|gay|bisexual|lesbian|queer|trans|transgender|bilingual|colou?r[- ]?blind|deaf|blind|christian|catholic|muslim"
    r"|jewish|buddhist|hindu|atheist|an only child",
    "job": rf"{JOBS}|artist|dancer|singer|painter|player|coach|veteran|veterinarian|vet|owner|psychologist|salesperson"
    r"|\w*(?:gamer|streamer|volunteer|officer|mother|mom|mum|father|dad|parent|widow|immigrant|runner|graduate"
    r"|beginner)",
    "kin": KIN,
    "pet": PETS,
    "thing": r"car|bike|bicycle|motorbike|house|flat|apartment|home|garden|guitar|piano|violin|keyboard|camera|boat"
    r"|van|truck|tattoos?|laptop|phone|computer|console|collection|business|company|shop|store|studio|bakery"
    r"|restaurant|degree|diploma|licen[cs]e|master'?s|phd|mortgage|blog|channel|podcast|farm|cabin|allotment"
    r"|telescope|passport|visa",
    "meeting": r"appointment|meeting|interview|exam|test|flight|train|trip|wedding|surgery|operation|check-?up|class"
    r"|lesson|recital|concert|conference|competition|tournament|match|deadline|reservation|date|party|convention|show"
    r"|gig",
    "often": r"every (?:other )?\w+|each (?!other)\w+|daily|weekly|(?:once|twice|\w+ times) (?:a|per) \w+"
    r"|on (?:<weekday>|week)(?:day|end)s|on weekends|regularly|most (?:days|mornings|evenings|weekends)"
    r"|in the (?:mornings?|evenings?)",
    "when": r"yesterday|today|tonight|tomorrow|last (?:night|week\w*|month|year|\w+day|spring|summer|fall|autumn"
    r"|winter)|(?:this|next|coming) (?:week\w*|month|year|\w+day|spring|summer|fall|autumn|winter|morning|afternoon"
    r"|evening)|\w+ (?:days?|weeks?|months?|years?) ago|in (?:\d+|a|two|three|four|a few) (?:days?|weeks?|months?"
    r"|years?)|(?:on |by |next )?(?:<weekday>)day(?!s)|(?:in|on|since|until|by) (?:(?:19|20)\d\d|(?-i:<Month>))"
    r"|(?:<month>) \d+|the other day|when I was|at (?:age|the age)|\d+(?:th|st|nd|rd)? of \w+",
    "place": r"(?:in|at|to|from|near|around|through) (?:the |a |an |my |our )?(?:\w+ ){0,2}?(?-i:[A-Z])\w+",
    "act": r"(?:visit|travel|learn|live|move|become|study|own|write|start|open|adopt|run|publish|buy|build|launch"
    r"|retire|grow|lose weight|go (?:back )?to (?!bed|sleep|the point)|get (?:a |an |into |married|fit|healthier|my )"
    r"|teach|work (?:as|at|in|with|for)|finish|paint|record|save|quit|stop|play|join|volunteer|compete|win|raise"
    r"|apply|explore|hike|climb|take (?:up|a|an|my|the)|pursue|host|expand|continue|practi[cs]e|make (?:a|my)"
    r"|give (?:back|my)|have (?:a|an|my own|kids|children)|read more|see (?-i:[A-Z]))",
    "did": r"(?:attended|joined|visited|travell?ed to|hosted|organi[sz]ed|participated in|took part in|signed up for"
    r"|enrolled|volunteered|performed|competed|presented|spoke at|watched|saw|met|met up with|made|built|painted"
    r"|wrote|created|cooked|baked|planted|played|read|ran|took|gave|had(?! to\b)|got|went|went to|tried|found|drew"
    r"|hiked|flew|drove|stayed|celebrated|spent|donated|received|learned|learnt|helped|discovered|recorded|shared"
    r"|started|finished|completed|set up|sold|bought|ordered|came back|got back|returned|lost|hung out|reached|swam"
    r"|biked|camped|designed|developed|interviewed|earned|scored|won|held|did|applied|reconnected|talked to"
    r"|checked out|picked up|gathered|led|dropped)",
    "ahead": r"tomorrow|tonight|(?:this|next|coming) (?:week\w*|month|year|\w+day|spring|summer|fall|autumn|winter)"
    r"|later (?:today|this \w+)|in (?:\d+|a|two|three|four|a few|a couple of) (?:days?|weeks?|months?)|soon"
    r"|(?:on|by|until|for) (?:(?:<weekday>)day(?!s)|the \d+(?:st|nd|rd|th)?)|on \d+|at the end of"
    r"|(?:in|on|by) (?-i:<Month>)",
    "about": rf"(?:is|are) (?:not )?{IS}|(?:isn't|aren't) allergic|"
    r"(?:is|are|was|were) (?:\w+ )?(?:(?-i:[A-Z])\w+|an?|my|from|in|at|\d\S*|called|named|allergic|<trait>"
    r"|c(?:o)?eliac|diabetic|asthmatic|\w*[- ]?intolerant|<state>|getting|moving|having|coming|turning|visiting"
    r"|studying|working|living|expecting|training|learning"
    r"|starting|flying|born|diagnosed|the (?:eldest|oldest|youngest))|(?:has|have) (?!been|my back|helped|taught"
    r"|given|shown|a lot)|works?|lives?|lived|loves?|likes?|hates?|enjoys?|prefers?|plays?|stud(?:y|ies)|teach(?:es)?"
    r"|owns?|runs?|moved|died|passed away|got (?!me\b)|turned|turns|comes?|came|visited|grew up|started|joined"
    r"|graduated|speaks?|wants? (?:a|an|to)|bought|adopted|gave me an?|had|took|(?:can't|can ?not|doesn't|does not)"
    r" (?:eat|drink|like|have|tolerate)|uses? a wheelchair",
    "bald": r"morgen|übermorgen|am \w+tag|am wochenende|nächste[nmrs]? \w+|am \d+\. ?\w+|bald|heute abend|im (?:januar"
    r"|februar|märz|april|mai|juni|juli|august|september|oktober|november|dezember|sommer|herbst|winter|frühling)"
    r"|in (?:einer|einem|zwei|drei|vier) (?:tagen|wochen?|monate?n?)",
    "neulich": r"gestern|vorgestern|letzte[nmrs]? \w+|vor (?:\d+|einer|einem|zwei|drei|vier|ein paar) (?:tag|woche"
    r"|monat|jahr)\w*|im jahr \d+",
    "oft": r"(?:(?:ein|zwei|drei|vier|fünf|mehr)mal|jede[nsr]?) (?:die |in der |am |im |pro )?(?:zweite[nrs]?"
    r" )?(?-i:[A-Z])\w+"
    r"|(?:ein|zwei|drei|mehr)mal täglich|täglich|wöchentlich|(?:mon|diens|mittwoch|donners|frei|sams|sonn)(?:tag)?s"
    r"|morgens|abends|regelmäßig|meistens|immer (?:am|im)",
    "familie": GERMAN_KIN,
}

# "I …": what follows the speaker, adverbs taken out. -----------------------------------------------------------------
FIRST = _table(
    ("identity", 0.95, r"am (?:called|named) <name>|go by <name>|am <name>$|am <full>$"),
    ("identity", 0.95, r"am \d+ years old|am \d\d$|(?:just )?turned \d\d|am turning \d\d|was born (?:in|on)"),
    ("identity", 0.95, r"am from (?!the other)\w|come from <name>|grew up (?:in|on|with)|was raised"),
    ("constraint", 0.95, r"(?:am|was) (?:\w+ )?(?:allergic|intolerant|diabetic|asthmatic|c(?:o)?eliac|anaemic|anemic)"
     r"|(?:am|was) (?:lactose|gluten)[- ]intolerant|have (?:been )?(?:diagnosed with|a \w+ allergy)"
     r"|was diagnosed with"),
    ("constraint", 0.95, rf"(?:am|was) (?:not )?{IS}"),
    ("constraint", 0.9, rf"(?:don't |do not )?{HAS}|have no {DEGREE}{ILLNESS}"),
    ("constraint", 0.9, r"suffer from|am recovering from|(?:take|am taking|am on) (?:\w+ )?(?:medication"
     r"|antibiotics|insulin|antidepressants)|(?:take|am taking|am on) (?:[\w-]+ ){0,3}?(?:\d+ ?(?:mg|mcg|µg|ml)"
     r"|tablets?|pills?"
     r"|painkillers?|blood thinners?|[a-z]+ \d+ (?:once|twice|daily|every|\w+ times))"),
    ("constraint", 0.9, rf"(?:(?:don't |do not |never )?(?:take|use)|am (?:not )?(?:taking|on|off|using|back on)"
     rf"|started(?: taking"
     r"| on| using)?|stopped(?: taking| using)?|quit(?: taking)?|gave up(?: taking)?|have (?:stopped|started|quit)(?:"
     r" taking)?"
     r"|came off|went off|was (?:put on|prescribed|taken off)|have been (?:put on|prescribed|taken off))"
     rf" (?:my |the |any |some |(?:\d+ ?(?:mg|mcg|µg|g|units)|a (?:low|high|small) dose)(?: of)? )?{MEDICINE}"),
    ("constraint", 0.9, r"(?:can ?not|can't|must ?n[o']t|must not|am not allowed to|may not) (?:take|tolerate|have)"
     r" (?:any )?(?:<drug>)|(?:can ?not|can't|don't|do not) tolerate (?:any )?(?:<food>)"),
    ("constraint", 0.9, r"am (?:an? )?(?:<trait>)|have (?:always )?been (?:an? )?(?:\w+ )?(?:<trait>)"
     r"|(?:am on|follow|am following|started|went on|am back on|need|keep to|am doing|switched to) (?:an?|the|my)"
     r" (?:[\w-]+ ){0,3}diet|(?:am (?:not )?(?:on|off|doing|back on)|am doing|started|stopped|quit|gave up|went) (?:the"
     r" )?(?:keto|paleo|atkins|low[- ]carb|whole ?30)|(?:went|became|turned"
         r"|am going) (?:<trait>|gluten-free|dairy-free)"
     r"|(?:can ?not|can't|don't|do not|never|stopped|quit|gave up|avoid) (?:eat|eating|drink|drinking|smoke|smoking"
     r"|have|having)? ?(?:meat|fish|seafood|shellfish|pork|beef|dairy|milk|gluten|eggs?|nuts?|peanuts?|sugar|alcohol"
     r"|wine|coffee|caffeine|soy|wheat|bread|spicy|smok(?:e|ing)|drinking)|eat (?:fish|meat|eggs|dairy)|(?:eat|drink)"
     r" no (?:<food>)"),
    ("constraint", 0.9, r"(?:use|need|am in|am on|depend on|rely on) (?:an?|my|the) (?:\w+ )?(?:wheelchair"
     r"|walking frame"
     r"|hearing aids?|rollator|crutches)|am a wheelchair user"),
    ("constraint", 0.85, r"(?:broke|sprained|tore|injured|fractured|twisted|hurt) my|had (?:\w+ )?(?:surgery"
         r"|a (?:stroke"
     r"|concussion))|(?:lost|gained) (?:\w+ ){0,2}(?:kilos?|kg|pounds|lbs|weight)"),
    ("identity", 0.9, r"am (?:<state>)|am (?-i:[A-Z])\w+(?:ish|ese|ian|ean|[^m]an)(?!\w)|am (?:half"
     r"|part)[- ](?-i:[A-Z])\w+"),
    ("relationship", 0.9, r"am (?:married to|dating|seeing (?:someone|a)|engaged to|(?:an? "
     r"|the )?(?:\w+ )?(?:<kin>) (?:of|to))|(?:got|am getting) (?:married|engaged|divorced)|broke up"
     r"|(?:don't )?have <a> ?(?:<kin>|<pet>)|(?:adopted|got|rescued) (?:an?|the|my|two|another"
     r"|our)(?: \w+){0,3} (?:<pet>)|am (?:a )?(?:mother|father|mom|dad|mum|parent) (?:of|to)|became a"
     r"|am expecting (?:an?|my|our|twins)(?! \w+ (?:kit|package|delivery))|miss my (?:<kin>)|(?:live|stay) with my"
     r"|am close (?:to|with) my"),
    ("identity", 0.9, r"am (?:an? |the )?(?:<role>)|am an? (?:\w+[ -]){0,4}?(?:<job>)|am (?:\w+ing )?(?:as )?an?"
        r" (?:\w+ ){0,2}(?:<job>)"),
    ("identity", 0.9, r"(?:don't )?live (?:in|near|with|on|at|by|alone|outside|close)|am living (?:in|with|near"
     r"|alone)|am based in|am (?:moving|relocating) (?:to|in|back|out)|(?:moved|relocated) (?:to|from|into|in with"
     r"|back|here|out of|away)|lived (?:in|with|near)|have (?:lived|been living) (?:in|here|with)"),
    ("identity", 0.9, r"(?:don't )?work (?:at|for|as|in|with|from|on|part|full|night|remote|freelance|three|four|two)"
     r"|am working (?:at|for|as|part|full|remote|towards?)|(?:worked|have worked|have been working"
     r"|used to work) (?:at|for|as|in|with|on)|(?:got|started|lost|left|quit|accepted|took|am starting|am leaving"
     r"|am quitting|found) (?:an? |my |the )(?:\w+[ -]){0,4}(?:job|position|role|business|company|store|shop|career"
     r"|internship|studio|startup)|(?:got|was|have been) (?:promoted|hired|fired|laid off)|am (?:unemployed"
     r"|in charge of|responsible for|studying|majoring|enrolled)|(?:study|studied|majored|graduated)(?! hard| for the"
     r"| the)|earn|am earning|run an? (?:\w+ ){0,3}(?:business|company|shop|store|studio|bakery|blog)|volunteer"
     r"|am volunteering|teach|am (?:an? )?(?:\w+ )?(?:major|intern)"),
    ("identity", 0.75, r"am working on (?:an?|my|the|some)(?! (?:\w+ )?(?:project|it|something)$)"),
    ("preference", 0.85, r"(?:always|only ever|generally|usually) (?:want|choose|take|book|ask for|request) (?:an?"
     r"|the|my)"
     r"|only (?:ever )?(?:fly|travel|stay|eat|drink|buy|wear|book|use) (?:with |by |at |in |on )?(?!it|them|one"
     r"|\d)\w+"),
    ("preference", 0.85, r"(?:love|like|enjoy|adore|prefer|hate|dislike|loathe|can't stand|can not stand"
     r"|don't (?:really )?(?:like|enjoy))|(?:have )?(?:always )(?:loved|liked|enjoyed|hated|preferred)|have (?:loved"
     r"|liked|hated)|am (?:an? )?(?:\w+ )?(?:fan of|into|fond of|obsessed with|passionate about|interested in|keen on"
     r"|afraid of|scared of|terrified of|good at|a sucker for)"),
    ("identity", 0.85, r"(?:have|own|don't have|don't own) <a> ?(?:<thing>)|(?:bought|inherited|own|rent) (?:an?"
     r"|my|our|the)"),
    ("strength", 0.75, r"(?:can|can't) (?:play|speak|swim|drive|cook|ride|sing|dance|code|read (?-i:[A-Z]))"
     r"|(?:don't )?speak <name>|know how to|(?:am learning|learned|learnt|taught myself|am practi[cs]ing"
     r"|have been (?:learning|practi[cs]ing))(?! (?:that|about|the hard)\b)|play (?:the |for |in |an? )?\w+"),
    ("interest", 0.75, r"(?!am |think|feel|want|need|know)(?:\w+ ){1,12}?(?:<often>)|have been \w+ing\b.* (?:for"
     r"|since) |started \w+ing|took up|used to (?!think|be like|believe|it)|(?:usually|often|always|rarely) "
     r"|go (?:\w+ing|for (?:a )?\w+s?|to the gym)|(?:collect|write|paint|read|run|swim|hike|knit|bake|meditate|garden"
     r"|surf|journal)(?: \w+)?"),
    ("event", 0.85, r"(?:got|was|have been) (?:accepted|admitted|elected|nominated|selected|awarded)|won (?:an?|the"
     r"|my|second|first|third)|(?:published|launched|opened) (?:an?|my|the|our)|(?:passed|failed) (?:my|the)"
     r"|(?:retired|immigrated|emigrated)|(?:lost|buried) my|gave birth|(?:joined|founded|started|quit) (?:an?|my)"
     r"|finished (?:my|writing|reading)|applied for|came out|transitioned|adopted|completed (?:an?|my)"),
    ("plan", 0.75, r"(?:will|am going to|am (?!feeling|thinking|wondering|looking|trying|working|considering"
     r"|expecting|struggling|hoping)\w+ing|plan|plan to|fly|leave|arrive|land|start|move|travel|meet|have (?:an?|the"
     r"|my)) .{0,120}?(?<!\w)(?:<ahead>)"),
    ("plan", 0.75, r"have <a> ?(?:<meeting>)\b(?! idea)|(?:booked|reserved|scheduled|have booked|am booked)"
     r"|signed up for|changed my"),
    ("plan", 0.6, r"(?:am planning|plan|am hoping|intend|decided|have decided|am thinking (?:about|of)"
     r"|am considering|am looking forward to|am saving|am participating in|am competing in|am trying out"
     r"|am trying to (?:lose|eat|learn|quit|find|stay|get fit|drink|cut)|am preparing|am training"
     r"|am getting ready) (?:on |to |for |up |a |an |about |of |my |not to )?(?!see you|hear|you)\w"
     r"|am going (?:camping|hiking|on (?:an?|my)|to (?:an?|the|my|visit|start|open|move|study|get|have))"),
    ("goal", 0.6, r"(?:want|would like|would love|hope|am hoping|aim|wish|dream|have always wanted|am determined"
     r"|am aiming|have set a goal) (?:to |of )(?:<act>)|(?:have set|set) (?:an?|my|the"
     r"|myself an?)(?: \w+){0,3} goals?|am (?:looking|searching) for (?:an? (?:new )?(?:job|house|flat|apartment"
     r"|place))"),
    ("event", 0.75, r"(?:<did>) (?!by |on |in$)(?:.{0,160}?\b)?(?:<when>)"),
    ("event", 0.75, r"(?:went|have been) (?:to|on) (?:an?|the|my|our|<name>)|(?:went) (?:camping|hiking|skiing"
     r"|swimming|kayaking|fishing|surfing|climbing|biking)|(?:have )?(?:visited|travell?ed|attended|participated in"
     r"|volunteered|donated|hosted|performed|joined|organized)"),
    ("event", 0.75, r"(?:<did>) .{0,120}?<place>"),
)  # fmt: skip

# "My …": what follows the word. -------------------------------------------------------------------------------------
MINE = _table(
    ("relationship", 0.9, r"(?:\w+ )?(?:<kin>)'s (?:birthday|wedding|name|anniversary|favou?rite \w+) (?:is|was|are)"),
    ("identity", 0.95, r"(?:(?:new |full |first |last |middle |maiden |married |sur|nick)*name|surname) (?:is|was)"
        r"|(?:native|first) language is"
     r"|mother tongue is"),
    ("identity", 0.95, r"(?:(?:new |current |old |home |work |private )*)(?:birthday|anniversary|hometown|address"
     r"|e-?mail|phone number|age) (?:is|falls)"
     r"|pronouns are"),
    ("identity", 0.9, r"(?:[\w-]+ ){0,2}?(?:<amount>) (?:is|was|went|has (?:gone|risen)|comes) .{0,40}?\d"),
    ("preference", 0.85, r"(?:\w+ )?favou?rites? (?:(?:\w+ ){0,5}(?:is|are|was|has always been)|(?:is|are)) (?!when"
     r"|how|what|that)"),
    ("preference", 0.85, r"(?:\w+ )?(?:hobb(?:y|ies)|passions?|guilty pleasure)(?: \w+){0,2} (?:is|are|include)"),
    ("goal", 0.75, r"(?:\w+ )?(?:goals?|dreams?|plan|ambition|resolution)(?: \w+){0,3} (?:is|are|was) (?:to|of) "),
    ("constraint", 0.9, r"(?:\w+ ){0,2}(?:allerg(?:y|ies)|diet|diagnosis|medication|blood type|doctor) (?:is|are|was"
     r"|says|said)"),
    ("plan", 0.75, r"(?:\w+ ){0,2}(?:<meeting>)(?: \w+){0,4} (?:is|are|will be|got|leaves|starts|ends) .*?(?:\d"
     r"|<ahead>|day)"),
    ("relationship", 0.9, r"(?:\w+ ){0,2}?(?:<kin>|<pet>)(?:'s? (?:<kin>|<pet>))?(?: <name>| and <name>)?,?"
     r"(?: <name>,?)? (?:<about>)"),
    ("identity", 0.85, r"(?:new |current |day )?(?:job|employer|salary|company|business)(?: \w+){0,2} (?:is (?:an?"
         r"|in|at"
     r"|\$)|pays)"),
    ("identity", 0.75, r"(?:\w+ ){0,2}(?:<thing>) (?:is (?:an?|in|on|at|called|named|from)|broke|was stolen"
     r"|has (?:a|\d))"),
)  # fmt: skip

# "<Name> …": people who are named, and said to be something that lasts. ----------------------------------------------
NAMED = _table(
    ("relationship", 0.9, r"(?:is|was) my (?:\w+ ){0,2}?(?:<kin>|<pet>)"),
    ("constraint", 0.9, r"(?:can't|can ?not|must not|mustn't|doesn't|does not) tolerate (?:any )?(?:<food>|<drug>)"),
    ("constraint", 0.9, r"(?:can't|can ?not|must not|mustn't) (?:have (?:any )?(?:<food>)|(?:eat"
     r"|drink) (?!it|that|this|them|any more"
     r"|enough)\w+)"
     r"|is (?:\w+ )?(?:c(?:o)?eliac|diabetic)|(?:uses|needs|is in) a wheelchair"),
    ("constraint", 0.9, rf"(?:is|was) (?:not )?{IS}|{HAS}"),
    ("event", 0.85, r"(?:has )?(?:died|passed away)"),
    ("relationship", 0.85, r"has (?:an?|two|three) (?:\w+ )?(?:<kin>|<pet>)|got (?:married|engaged|divorced)"),
    ("constraint", 0.9, r"(?:is|was) (?:\w+ )?(?:allergic|intolerant)|has (?:an?|mild|severe"
         r"|bad) (?:\w+ ){0,2}?(?:allerg(?:y|ies)"
     r"|intolerance)"),
    ("identity", 0.85, r"is (?:from|pregnant|\d+ years|married|getting married|an? (?:\w+ )?(?:<job>"
     r"|<trait>))"),
    ("identity", 0.85, r"lives (?:in|near|with|at)|moved (?:to|from|in)|was born"),
    ("identity", 0.85, r"works (?:at|for|as|in)"),
    ("preference", 0.85, r"(?:loves|hates|can't (?:stand|eat)|doesn't (?:eat|drink|like)) (?!it|that|this|me)"),
)  # fmt: skip

# Of a whole clause, kept as it was said. -----------------------------------------------------------------------------
INSTRUCTIONS = _table(
    ("procedure", 0.95, r"(?:please )?(?:always|never|from now on,?|in (?:the )?future,?"
     r"|going forward,?)(?: please)? (?:use|include|provide|give me|format|mention|show|answer|respond|reply|write"
     r"|address|call me|explain|add|list|remind|specify|ask|suggest|recommend|send|tell me|convert|quote|cite|confirm"
     r"|check|put|highlight|state|note|report|summari[sz]e|verify|double-check|describe|compare|refer|calculate"
     r"|present|round|break|offer|consider|notify|track|start|end|keep|be (?:brief|concise|honest|direct))"),
    ("identity", 0.95, r"(?:please |you can |just )?call me <name>$"),
)  # fmt: skip

GERMAN_ORDER = (
    r"(?:bitte )?(?:antworte|schreibe?|erkläre?|nenne?|gib|verwende|benutze|nutze|sprich|rede|frage?|formuliere|rechne"
    r"|zeige?|halte)(?: (?:mir|uns|mit mir|mich|bitte|code|(?:deine|alle) \w+))* (?:immer|stets|nie|niemals|künftig"
    r"|ab jetzt|in zukunft|grundsätzlich)(?!\w)"
)
# German, kept as it was said: in its inflections, a safe third person is not a matter of rules. ----------------------
GERMAN = _table(
    ("constraint", 0.95, r"<name> (?:(?<=[s'’] )(?:<familie>) )?(?:ist|hat) (?:\w+ ){0,2}(?:allergisch|\w*intolerant"
        r"|vegetarier(?:in)?|veganer(?:in)?"
     r"|\w*allergie)"),
    ("identity", 0.95, r"ich hei(?:ß|ss)e <name>|mein name ist|ich bin \d+ jahre|ich komme (?:ursprünglich )?aus"),
    ("identity", 0.95, r"ich bin .{0,60}geboren|ich wurde .{0,60}geboren"),
    ("constraint", 0.95, r"ich bin (?:\w+ ){0,2}(?:allergisch|\w*intolerant|diabetiker)|ich leide (?:an|unter)"
     r"|ich (?:vertrage|darf) (?:\w+ )?kein\w*"),
    ("constraint", 0.9, r"ich (?:sitze|bin) (?:\w+ ){0,2}im rollstuhl|ich (?:brauche|nutze|benutze) (?:einen|den"
     r"|meinen)"
     r" rollstuhl|keine?n? (?!problem|ding|thema|stress|weg|grund|unterschied|frage|option|wunder|alternative"
     r"|lösung)\w+ für"
     r" (?:mich|<name>|meine?n? \w+)"),
    ("constraint", 0.95, r"(?:<name>|(?:mein|unser)e? (?:\w+ )?(?:<familie>)(?: <name>)?) (?:verträgt|darf) (?:\w+"
     r" )?kein\w*|(?:<name>|(?:mein|unser)e? (?:\w+ )?(?:<familie>)(?: <name>)?) (?:hat (?:\w+ )?zöliakie"
     r"|sitzt (?:\w+ )?im rollstuhl)"),
    ("procedure", 0.95, r"(?:bitte )?(?:immer|nie|niemals|ab jetzt|künftig|in zukunft|grundsätzlich)(?: (?:bitte|immer"
     r"|nur))* (?:\S+ ){1,8}?(?-i:[a-zäöüß])\w+(?:en|ern|eln)$"),
    ("procedure", 0.95, GERMAN_ORDER),
    ("event", 0.85, r"<name> ist (?:[\w.]+ ){0,5}(?:gestorben|verstorben)"),
    ("constraint", 0.95, r"(?:ich habe?|<name> hat|(?:mein|unser)e? (?:\w+ )?(?:<familie>)(?: <name>)? hat)"
     r" (?:\w+ ){0,2}"
     r"(?:\w*allergie|\w{3,}itis|\w*(?:lexie|kalkulie|praxie|phobie|(?<!nost)algie|anämie|epsie|sthenie)"
     r"|legasthenie|asthma|diabetes|migräne|zöliakie|adhs|(?-i:ADS)|autismus|depressionen|bluthochdruck|rheuma"
     r"|neurodermitis|krebs|\w*herz\w*fehler)"),
    ("constraint", 0.95, r"(?:ich bin|<name> ist|(?:mein|unser)e? (?:\w+ )?(?:<familie>)(?: <name>)? ist) (?:\w+ ){0,2}"
     r"(?:(?:diabet|asthmat|legasthen|epilept|dyslekt|bulimik|hämophil|phob)(?:iker(?:in)?|isch)|autist(?:in|isch)?"
     r"|legasthenisch|farbenblind|schwerhörig|gehörlos|blind|sehbehindert|gehbehindert)"),
    ("constraint", 0.9, r"ich bin (?:\w+ )?(?:vegetarier(?:in)?|veganer(?:in)?|vegetarisch|vegan)"),
    ("constraint", 0.9, r"ich (?:esse|trinke) (?:\w+ ){0,4}?(?:kein|keine|keinen|nie|nur|wieder|auch|seit)"),
    ("identity", 0.9, r"ich (?:wohne|lebe) (?:[\w.]+ ){0,4}?(?:in|bei|mit|auf|seit)|ich bin .{0,80}(?:gezogen"
     r"|umgezogen)"),
    ("identity", 0.95, r"(?:mein|unser)e? (?:(?:neue|private|aktuelle)[rs]? )?(?:adresse|anschrift|(?:handy"
        r"|telefon)?nummer|e-?mail\S*"
     r"|geburtstag|nachname|vorname|familienname|spitzname|arbeitgeber) (?:ist|lautet)"),
    ("identity", 0.9, r"(?:mein|unser)e? (?:\w+ ){0,2}?(?:<betrag>) (?:ist|sind|beträgt|betragen|liegt) .{0,40}?\d"),
    ("identity", 0.9, r"ich bin (?:\w+ )?(?:verheiratet|geschieden|ledig|verlobt|schwanger)"),
    ("identity", 0.9, r"ich (?:bin|arbeite) (?:jetzt |nun |inzwischen )?(?:selbstständig|selbständig|freiberuflich"
     r"|arbeitslos|in rente)(?!\w)|ich bin (?:jetzt |nun |endlich )?(?:wieder )?zurück in (?-i:[A-ZÄÖÜ])"),
    ("identity", 0.9, r"ich verdiene .{0,30}?\d|ich (?:arbeite|studiere|unterrichte) |ich bin (?:von beruf )?(?:\w+"
        r" )?\w*(?:lehrer|ärztin|arzt"
     r"|ingenieur|entwickler|architekt|designer|krankenpfleger|krankenschwester|student|köch|koch|autor"
     r"|fotograf)(?:in)?"),
    ("relationship", 0.9, r"(?:mein|unser)e? (?:\w+ )?(?:<familie>)(?: <name>)? (?:ist|sind|war|hat|haben|heißt"
     r"|wohnt|lebt"
     r"|arbeitet|kommt|feiert|wird|mag|liebt|isst|zieht|studiert)|ich habe (?:\w+ )?(?:eine?n?|zwei|drei"
     r"|keine) (?:\w+ )?(?:<familie>)"),
    ("identity", 0.85, r"ich bin (?:die |der )?<first>$"),
    ("preference", 0.85, r"ich (?:mag|liebe|hasse|bevorzuge) (?!dich|euch|das\b|es\b|ihn\b|sie\b)"
     r"|(?:mein|unser)e? lieblings\w+"),
    ("preference", 0.85, r"ich (?:fliege|fahre|reise|übernachte|kaufe|nehme|trage|lese|höre|zahle"
     r"|bezahle) (?:immer )?nur"
     r" (?:noch )?(?:(?:mit|bei|in|per|von) )?(?!\d|ein|kurz|mal|es\b)\w+"),
    ("preference", 0.85, r"ich \w+ (?:sehr |besonders )?(?:gern|gerne|lieber|am liebsten)"),
    ("strength", 0.75, r"ich (?:spreche|spiele|lerne) (?!das\b|es\b)\w+"),
    ("constraint", 0.9, rf"ich (?:nehme|habe) (?:[\w]+ ){{0,3}}?{GERMAN_MEDICINE}(?: (?:nicht mehr|mehr|abgesetzt)"
     rf"|[ ,.]|$)"),
    ("constraint", 0.9, r"ich nehme .*?(?:\d+ ?(?:mg|µg|ml|milligramm)|\w*tabletten?|\w*medikament\w*"
        r"|\w*antibiotik\w*|insulin"
     r"|\w*blutverdünner|\w*antidepressiv\w*|\w*k?c?ortison|(?-i:[A-ZÄÖÜ])[\w-]{4,} \d+$)"),
    ("interest", 0.75, r"ich (?!bin |habe |war |muss |soll |kann )\w+ (?:[\w.]+ ){0,8}?(?:<oft>)"),
    ("plan", 0.75, r"ich (?:fliege|fahre|reise|ziehe|besuche|treffe|heirate|beginne|fange|gehe|mache"
     r"|habe) .*(?:<bald>)"),
    ("plan", 0.75, r"(?:<bald>).*? (?:fliege|fahre|reise|ziehe|besuche|treffe|heirate|beginne|habe|gehe|mache"
     r"|koche|arbeite) ich"),
    ("goal", 0.6, r"ich (?:möchte|will|plane) (?!nur|wissen|fragen|sagen).*(?:lernen|werden|reisen|fliegen|kaufen"
     r"|besuchen|ziehen|schreiben)"),
    ("event", 0.75, r"(?:<neulich>).*? (?:habe|hab|bin|war) ich|ich (?:habe|hab|bin|war) .*(?:<neulich>)"),
)  # fmt: skip
