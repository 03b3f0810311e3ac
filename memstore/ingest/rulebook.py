"""The tables of the rules: what people say when they tell something lasting, and what it is a fact of.

`<kin>` in a pattern stands for a list of words that many rules share. Each pattern begins where its table says, is
matched without regard to case, and the first row that fits decides. Patterns see a few hundred characters at most.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Rule(NamedTuple):
    """A kind of fact, how far it is to be trusted, and what a clause that says it looks like."""

    type: str
    confidence: float
    pattern: re.Pattern[str]


def _table(*rows: tuple[str, float, str]) -> tuple[Rule, ...]:
    return tuple(
        Rule(kind, confidence, re.compile(rf"(?:{_spelled_out(pattern)})\b", re.IGNORECASE))
        for kind, confidence, pattern in rows
    )


def _spelled_out(pattern: str) -> str:
    return _WORD.sub(lambda word: _spelled_out(_WORDS[word[1]]), pattern)


# Words that many rules share, written <so> in their patterns. --------------------------------------------------------
_WORD = re.compile(r"<(\w+)>")
_WORDS = {
    "name": r"(?-i:[A-Z])[\w'’.-]*",
    "a": r"(?:an?|the|my|our|some|another|one|two|three|four|five|six|\d+|several|many|lots of|no|any)(?: \w+){0,3}?",
    "trait": r"vegan|vegetarian|pescatarian|flexitarian|kosher|halal",
    "state": r"single|married|divorced|engaged|widowed|pregnant|retired|unemployed|self-employed|left-handed|adopted|gay"
    r"|bisexual|lesbian|queer|trans|transgender|bilingual|colou?r[- ]?blind|deaf|blind|christian|catholic|muslim|jewish"
    r"|buddhist|hindu|atheist|an only child",
    "job": r"\w*(?:nurse|teacher|doctor|engineer|developer|programmer|designer|student|lawyer|writer|author|artist|chef"
    r"|cook|baker|dancer|singer|musician|painter|player|coach|manager|accountant|scientist|researcher|professor|driver"
    r"|pilot|illustrator|\w{3,}(?:ologist|ician|grapher)|veteran|veterinarian|vet|founder|owner|freelancer|consultant|analyst|architect|photographer|journalist"
    r"|editor|therapist|counsell?or|psychologist|dentist|pharmacist|plumber|electrician|carpenter|farmer|librarian"
    r"|translator|salesperson|producer|director|actor|actress|gamer|streamer|volunteer|firefighter|officer|soldier"
    r"|mother|mom|mum|father|dad|parent|widow|immigrant|runner|streamer|graduate|beginner|coordinator|assistant)",
    "kin": r"mother|mom|mum|mama|father|dad|papa|parents|sister|brother|siblings?|son|daughter|kids?|child(?:ren)?|twins?"
    r"|baby|wife|husband|spouse|partner|girlfriend|boyfriend|fianc[ée]e?|aunt|uncle|cousins?|grand(?:ma|mother|pa|father"
    r"|son|daughter|parents|kids|child|children)|niece|nephew|family|friends?|room-?mate|flat-?mate|boss|manager|mentor"
    r"|colleagues?|co-?workers?|teacher|coach|neighbou?rs?|(?:mother|father|sister|brother)-in-law|in-laws|step\w+|ex",
    "pet": r"dogs?|pup|pupp(?:y|ies)|cats?|kittens?|turtles?|tortoises?|hamsters?|rabbits?|parrots?|horses?|pony|snakes?"
    r"|guinea pigs?|gold-?fish|birds?|pets?|lizards?|geckos?|chickens?|retrievers?|shepherds?|labradors?",
    "thing": r"car|bike|bicycle|motorbike|house|flat|apartment|home|garden|guitar|piano|violin|keyboard|camera|boat|van"
    r"|truck|tattoos?|laptop|phone|computer|console|collection|business|company|shop|store|studio|bakery|restaurant"
    r"|degree|diploma|licen[cs]e|master'?s|phd|mortgage|blog|channel|podcast|farm|cabin|allotment|telescope|passport|visa",
    "illness": r"asthma|diabetes|allerg(?:y|ies)|anxiety|depression|migraines?|adhd|autism|arthritis|epilepsy|eczema"
    r"|insomnia|c(?:o)?eliac|cancer|anemia|anaemia|gastritis|ulcers?|(?:heart|thyroid|skin|knee|back) (?:condition|problems?"
    r"|disease|issues?)|high blood pressure|high cholesterol|chronic \w+|lactose intolerance|dyslexia|a pacemaker",
    "meeting": r"appointment|meeting|interview|exam|test|flight|train|trip|wedding|surgery|operation|check-?up|class|lesson"
    r"|recital|concert|conference|competition|tournament|match|deadline|reservation|date|party|convention|show|gig",
    "often": r"every (?:other )?\w+|each (?!other)\w+|daily|weekly|(?:once|twice|\w+ times) (?:a|per) \w+|on (?:mon|tues|wednes|thurs"
    r"|fri|satur|sun|week)(?:day|end)s|on weekends|regularly|most (?:days|mornings|evenings|weekends)|in the (?:mornings?"
    r"|evenings?)",
    "when": r"yesterday|today|tonight|tomorrow|last (?:night|week\w*|month|year|\w+day|spring|summer|fall|autumn|winter)|"
    r"(?:this|next|coming) (?:week\w*|month|year|\w+day|spring|summer|fall|autumn|winter|morning|afternoon|evening)|\w+"
    r" (?:days?|weeks?|months?|years?) ago|in (?:\d+|a|two|three|four|a few) (?:days?|weeks?|months?|years?)|(?:on |by "
    r"|next )?(?:mon|tues|wednes|thurs|fri|satur|sun)day(?!s)|(?:in|on|since|until|by) (?:(?:19|20)\d\d|(?-i:January|"
    r"February|March|April|May|June|July|August|September|October|November|December))|(?:january|february|march|april|may"
    r"|june|july|august|september|october|november|december) \d+|the other day|when I was|at (?:age|the age)|\d+(?:th|st|nd"
    r"|rd)? of \w+",
    "place": r"(?:in|at|to|from|near|around|through) (?:the |a |an |my |our )?(?:\w+ ){0,2}?(?-i:[A-Z])\w+",
    "act": r"(?:visit|travel|learn|live|move|become|study|own|write|start|open|adopt|run|publish|buy|build|launch|retire|grow"
    r"|lose weight|go (?:back )?to (?!bed|sleep|the point)|get (?:a |an |into |married|fit|healthier|my )|teach|work (?:as|at|in"
    r"|with|for)|finish|paint|record|save|quit|stop|play|join|volunteer|compete|win|raise|apply|explore|hike|climb|take (?:up|a|an|my|the)|pursue"
    r"|host|expand|continue|practi[cs]e|make (?:a|my)|give (?:back|my)|have (?:a|an|my own|kids|children)|read more|see (?-i:[A-Z]))",
    "did": r"(?:attended|joined|visited|travell?ed to|hosted|organi[sz]ed|participated in|took part in|signed up for|enrolled"
    r"|volunteered|performed|competed|presented|spoke at|watched|saw|met|met up with|made|built|painted|wrote|created|cooked"
    r"|baked|planted|played|read|ran|took|gave|had(?! to\b)|got|went|went to|tried|found|drew|hiked|flew|drove|stayed|celebrated"
    r"|spent|donated|received|learned|learnt|helped|discovered|recorded|shared|started|finished|completed|set up|sold"
    r"|bought|ordered|came back|got back|returned|lost|hung out|reached|swam|biked|camped|designed|developed|interviewed"
    r"|earned|scored|won|held|did|applied|reconnected|talked to|checked out|picked up|gathered|led|dropped)",
    "ahead": r"tomorrow|tonight|(?:this|next|coming) (?:week\w*|month|year|\w+day|spring|summer|fall|autumn|winter)"
    r"|later (?:today|this \w+)|in (?:\d+|a|two|three|four|a few|a couple of) (?:days?|weeks?|months?)|soon"
    r"|(?:on|by|until|for) (?:(?:mon|tues|wednes|thurs|fri|satur|sun)day(?!s)|the \d+(?:st|nd|rd|th)?)|on \d+|at the end of"
    r"|(?:in|on|by) (?-i:January|February|March|April|May|June|July|August|September|October|November|December)",
    "about": r"(?:is|are|was|were) (?:\w+ )?(?:(?-i:[A-Z])\w+|an?|my|from|in|at|\d\S*|called|named|allergic|<trait>|<state>|getting|moving"
    r"|having|coming|turning|visiting|studying|working|living|expecting|training|learning|starting|flying|born|diagnosed"
    r"|the (?:eldest|oldest|youngest))|(?:has|have) (?!been|my back|helped|taught|given|shown|a lot)|works?|lives?|lived"
    r"|loves?|likes?|hates?|enjoys?|prefers?|plays?|stud(?:y|ies)|teach(?:es)?|owns?|runs?|moved|died|passed away"
    r"|got (?!me\b)|turned|turns|comes?|came|visited|grew up|started|joined|graduated|speaks?|wants? (?:a|an|to)|bought"
    r"|adopted|gave me an?|had|took|(?:can|does)(?:n't| ?not) (?:eat|drink|like|have)",
    "bald": r"morgen|übermorgen|am \w+tag|am wochenende|nächste[nmrs]? \w+|am \d+\.|bald|heute abend|im (?:januar|februar"
    r"|märz|april|mai|juni|juli|august|september|oktober|november|dezember|sommer|herbst|winter|frühling)"
    r"|in (?:einer|einem|zwei|drei|vier) (?:tagen|wochen?|monate?n?)",
    "neulich": r"gestern|vorgestern|letzte[nmrs]? \w+|vor (?:\d+|einer|einem|zwei|drei|vier|ein paar) (?:tag|woche|monat"
    r"|jahr)\w*|im jahr \d+",
    "familie": r"\w*mutter|mama|\w*vater|papa|\w*schwestern?|\w*br[uü]der|geschwister|eltern|\w*tante|\w*onkel|oma|opa"
    r"|cousine?|frau|mann|partner(?:in)?|freund(?:in)?|sohn|tochter|kinder|hund|hündin|katze|kater|chef(?:in)?"
    r"|kolleg(?:e|in)|nachbar(?:in)?",
}

# "I …": what follows the speaker, adverbs taken out. -----------------------------------------------------------------
FIRST = _table(
    ("identity", 0.95, r"am (?:called|named) <name>|go by <name>|am <name>$"),
    ("identity", 0.95, r"am \d+ years old|am \d\d$|(?:just )?turned \d\d|am turning \d\d|was born (?:in|on)"),
    ("identity", 0.95, r"am from (?!the other)\w|come from <name>|grew up (?:in|on|with)|was raised"),
    ("health", 0.95, r"(?:am|was) (?:\w+ )?(?:allergic|intolerant|diabetic|asthmatic|c(?:o)?eliac|anaemic|anemic)"
     r"|(?:am|was) (?:lactose|gluten)[- ]intolerant|have (?:been )?(?:diagnosed with|a \w+ allergy)|was diagnosed with"),
    ("health", 0.9, r"(?:have|had) (?:(?:an?|the|my|some|mild|severe|bad|a (?:mild|severe|bad|serious)) )?(?:\w+ )?<illness>"
     r"|suffer from|am recovering from|(?:take|am taking|am on) (?:\w+ )?(?:medication|antibiotics|insulin|antidepressants)"),
    ("health", 0.9, r"am (?:an? )?(?:<trait>)|(?:went|became|turned|am going) (?:<trait>|gluten-free|dairy-free)"
     r"|(?:can ?not|can't|don't|do not|never|stopped|quit|gave up|avoid) (?:eat|eating|drink|drinking|smoke|smoking|have|having)? ?"
     r"(?:meat|fish|seafood|shellfish|pork|beef|dairy|milk|gluten|eggs?|nuts?|peanuts?|sugar|alcohol|wine|coffee|caffeine|soy"
     r"|wheat|bread|spicy|smok(?:e|ing)|drinking)|eat (?:fish|meat|eggs|dairy)"),
    ("health", 0.85, r"(?:broke|sprained|tore|injured|fractured|twisted|hurt) my|had (?:\w+ )?(?:surgery|a (?:stroke|concussion))"
     r"|(?:lost|gained) (?:\w+ ){0,2}(?:kilos?|kg|pounds|lbs|weight)"),
    ("identity", 0.9, r"am (?:<state>)|am (?-i:[A-Z])\w+(?:ish|ese|ian|ean|[^m]an)(?!\w)|am (?:half|part)[- ](?-i:[A-Z])\w+"),
    ("relation", 0.9, r"am (?:married to|dating|seeing (?:someone|a)|engaged to|(?:an? |the )?(?:\w+ )?(?:<kin>) (?:of|to))"
     r"|(?:got|am getting) (?:married|engaged|divorced)|broke up|(?:don't )?have <a> ?(?:<kin>|<pet>)|(?:adopted|got|rescued)"
     r" (?:an?|the|my|two|another|our)(?: \w+){0,3} (?:<pet>)|am (?:a )?(?:mother|father|mom|dad|mum|parent) (?:of|to)|became a"
     r"|am expecting (?:an?|my|our|twins)(?! \w+ (?:kit|package|delivery))|miss my (?:<kin>)|(?:live|stay) with my|am close (?:to|with) my"),
    ("work", 0.9, r"am an? (?:\w+[ -]){0,4}?(?:<job>)|am (?:\w+ing )?(?:as )?an? (?:\w+ ){0,2}(?:<job>)"),
    ("identity", 0.9, r"(?:don't )?live (?:in|near|with|on|at|by|alone|outside|close)|am living (?:in|with|near|alone)|am based in"
     r"|am (?:moving|relocating) (?:to|in|back|out)|(?:moved|relocated) (?:to|from|into|in with|back|here|out of|away)"
     r"|lived (?:in|with|near)|have (?:lived|been living) (?:in|here|with)"),
    ("work", 0.9, r"(?:don't )?work (?:at|for|as|in|with|from|on|part|full|night|remote|freelance|three|four|two)"
     r"|am working (?:at|for|as|part|full|remote|towards?)|(?:worked|have worked|have been working|used to work) (?:at|for|as|in|with|on)"
     r"|(?:got|started|lost|left|quit|accepted|took|am starting|am leaving|am quitting|found) (?:an? |my |the )(?:\w+[ -]){0,4}"
     r"(?:job|position|role|business|company|store|shop|career|internship|studio|startup)|(?:got|was|have been) (?:promoted|hired|fired"
     r"|laid off)|am (?:unemployed|in charge of|responsible for|studying|majoring|enrolled)|(?:study|studied|majored|graduated)"
     r"(?! for the| the)|earn|am earning|run an? (?:\w+ ){0,3}(?:business|company|shop|store|studio|bakery|blog)|volunteer|am volunteering"
     r"|teach|am (?:an? )?(?:\w+ )?(?:major|intern)"),
    ("work", 0.75, r"am working on (?:an?|my|the|some)(?! (?:\w+ )?(?:project|it|something)$)"),
    ("preference", 0.85, r"(?:love|like|enjoy|adore|prefer|hate|dislike|loathe|can't stand|can not stand|don't (?:really )?(?:like|enjoy))"
     r"|(?:have )?(?:always )(?:loved|liked|enjoyed|hated|preferred)|have (?:loved|liked|hated)"
     r"|am (?:an? )?(?:\w+ )?(?:fan of|into|fond of|obsessed with|passionate about|interested in|keen on|afraid of|scared of|terrified of|good at|a sucker for)"),
    ("possession", 0.85, r"(?:have|own|don't have|don't own) <a> ?(?:<thing>)|(?:bought|inherited|own|rent) (?:an?|my|our|the)"),
    ("skill", 0.75, r"(?:can|can't) (?:play|speak|swim|drive|cook|ride|sing|dance|code|read (?-i:[A-Z]))|(?:don't )?speak <name>|know how to"
     r"|(?:am learning|learned|learnt|taught myself|am practi[cs]ing|have been (?:learning|practi[cs]ing))(?! (?:that|about|the hard)\b)"
     r"|play (?:the |for |in |an? )?\w+"),
    ("habit", 0.75, r"(?!am |think|feel|want|need|know)(?:\w+ ){1,12}?(?:<often>)|have been \w+ing\b.* (?:for|since) |started \w+ing|took up"
     r"|used to (?!think|be like|believe|it)|(?:usually|often|always|rarely) |go (?:\w+ing|for (?:a )?\w+s?|to the gym)"
     r"|(?:collect|write|paint|read|run|swim|hike|knit|bake|meditate|garden|surf|journal)(?: \w+)?"),
    ("event", 0.85, r"(?:got|was|have been) (?:accepted|admitted|elected|nominated|selected|awarded)|won (?:an?|the|my|second|first|third)"
     r"|(?:published|launched|opened) (?:an?|my|the|our)|(?:passed|failed) (?:my|the)|(?:retired|immigrated|emigrated)"
     r"|(?:lost|buried) my|gave birth|(?:joined|founded|started|quit) (?:an?|my)|finished (?:my|writing|reading)|applied for"
     r"|came out|transitioned|adopted|completed (?:an?|my)"),
    ("plan", 0.75, r"(?:will|am going to|am (?!feeling|thinking|wondering|looking|trying|working|considering|expecting|struggling|hoping)\w+ing|plan|plan to|fly|leave|arrive|land|start|move|travel|meet|have (?:an?|the|my))"
     r" .{0,120}?(?<!\w)(?:<ahead>)"),
    ("plan", 0.75, r"have <a> ?(?:<meeting>)\b(?! idea)|(?:booked|reserved|scheduled|have booked|am booked)|signed up for|changed my"),
    ("plan", 0.6, r"(?:am planning|plan|am hoping|intend|decided|have decided|am thinking (?:about|of)|am considering|am looking forward to"
     r"|am saving|am participating in|am competing in|am trying out|am trying to (?:lose|eat|learn|quit|find|stay|get fit|drink|cut)|am preparing|am training|am getting ready) (?:on |to |for |up |a |an |about |of |my |not to )?(?!see you|hear|you)\w"
     r"|am going (?:camping|hiking|on (?:an?|my)|to (?:an?|the|my|visit|start|open|move|study|get|have))"),
    ("goal", 0.6, r"(?:want|would like|would love|hope|am hoping|aim|wish|dream|have always wanted|am determined|am aiming|have set a goal)"
     r" (?:to |of )(?:<act>)|(?:have set|set) (?:an?|my|the|myself an?)(?: \w+){0,3} goals?|am (?:looking|searching) for (?:an? (?:new )?(?:job|house|flat|apartment|place))"),
    ("event", 0.75, r"(?:<did>) (?!by |on |in$)(?:.{0,160}?\b)?(?:<when>)"),
    ("event", 0.75, r"(?:went|have been) (?:to|on) (?:an?|the|my|our|<name>)|(?:went) (?:camping|hiking|skiing|swimming|kayaking|fishing|surfing|climbing|biking)"
     r"|(?:have )?(?:visited|travell?ed|attended|participated in|volunteered|donated|hosted|performed|joined|organized)"),
    ("event", 0.75, r"(?:<did>) .{0,120}?<place>"),
)  # fmt: skip

# "My …": what follows the word. -------------------------------------------------------------------------------------
MINE = _table(
    ("relation", 0.9, r"(?:\w+ )?(?:<kin>)'s (?:birthday|wedding|name|anniversary|favou?rite \w+) (?:is|was|are)"),
    (
        "identity",
        0.95,
        r"(?:full |first |last |middle |nick)?name (?:is|was)|(?:native|first) language is|mother tongue is",
    ),
    ("identity", 0.95, r"(?:birthday|anniversary|hometown|address|e-?mail|phone number|age) (?:is|falls)|pronouns are"),
    (
        "preference",
        0.85,
        r"(?:\w+ )?favou?rites? (?:(?:\w+ ){0,5}(?:is|are|was|has always been)|(?:is|are)) (?!when|how|what|that)",
    ),
    ("preference", 0.85, r"(?:\w+ )?(?:hobb(?:y|ies)|passions?|guilty pleasure)(?: \w+){0,2} (?:is|are|include)"),
    ("goal", 0.75, r"(?:\w+ )?(?:goals?|dreams?|plan|ambition|resolution)(?: \w+){0,3} (?:is|are|was) (?:to|of) "),
    (
        "health",
        0.9,
        r"(?:\w+ ){0,2}(?:allerg(?:y|ies)|diet|diagnosis|medication|blood type|doctor) (?:is|are|was|says|said)",
    ),
    (
        "plan",
        0.75,
        r"(?:\w+ ){0,2}(?:<meeting>)(?: \w+){0,4} (?:is|are|will be|got|leaves|starts|ends) .*?(?:\d|<ahead>|day)",
    ),
    ("relation", 0.9, r"(?:\w+ ){0,2}?(?:<kin>|<pet>)(?: <name>| and <name>)?,?(?: <name>,?)? (?:<about>)"),
    (
        "work",
        0.85,
        r"(?:new |current |day )?(?:job|employer|salary|company|business)(?: \w+){0,2} (?:is (?:an?|in|at|\$)|pays)",
    ),
    (
        "possession",
        0.75,
        r"(?:\w+ ){0,2}(?:<thing>) (?:is (?:an?|in|on|at|called|named|from)|broke|was stolen|has (?:a|\d))",
    ),
)

# "<Name> …": people who are named, and said to be something that lasts. ----------------------------------------------
NAMED = _table(
    ("relation", 0.9, r"(?:is|was) my (?:\w+ ){0,2}?(?:<kin>|<pet>)"),
    ("relation", 0.85, r"has (?:an?|two|three) (?:\w+ )?(?:<kin>|<pet>)|got (?:married|engaged|divorced)"),
    (
        "identity",
        0.85,
        r"is (?:allergic|from|pregnant|\d+ years|married|getting married|an? (?:\w+ )?(?:<job>|<trait>))",
    ),
    ("identity", 0.85, r"lives (?:in|near|with|at)|moved (?:to|from|in)|was born"),
    ("work", 0.85, r"works (?:at|for|as|in)"),
)

# Of a whole clause, kept as it was said. -----------------------------------------------------------------------------
INSTRUCTIONS = _table(
    ("instruction", 0.95, r"(?:please )?(?:always|never|from now on,?|in (?:the )?future,?|going forward,?)(?: please)? "
     r"(?:use|include|provide|give me|format|mention|show|answer|respond|reply|write|address|call me|explain|add|list|remind"
     r"|specify|ask|keep|suggest|recommend|send|tell me|convert|quote|cite|confirm|check|put|highlight|state|note)"),
    ("identity", 0.95, r"(?:please |you can |just )?call me <name>$"),
)  # fmt: skip

# German, kept as it was said: in its inflections, a safe third person is not a matter of rules. ----------------------
GERMAN = _table(
    ("identity", 0.95, r"ich hei(?:ß|ss)e <name>|mein name ist|ich bin \d+ jahre|ich komme (?:ursprünglich )?aus"),
    ("identity", 0.95, r"ich bin .{0,60}geboren|ich wurde .{0,60}geboren"),
    ("health", 0.95, r"ich bin (?:\w+ ){0,2}(?:allergisch|\w*intolerant|diabetiker)|ich leide (?:an|unter)|ich vertrage kein"),
    ("health", 0.95, r"ich habe? (?:\w+ ){0,2}(?:\w*allergie|asthma|diabetes|migräne|zöliakie)"),
    ("health", 0.9, r"ich bin (?:\w+ )?(?:vegetarier|veganer|vegetarisch|vegan)"),
    ("health", 0.9, r"ich (?:esse|trinke) (?:\w+ ){0,4}?(?:kein|keine|keinen|nie|nur|wieder|auch|seit)"),
    ("identity", 0.9, r"ich (?:wohne|lebe) (?:\w+ ){0,3}?(?:in|bei|mit|auf|seit)|ich bin .{0,80}(?:gezogen|umgezogen)"),
    ("identity", 0.9, r"ich bin (?:\w+ )?(?:verheiratet|geschieden|ledig|verlobt|schwanger)"),
    ("work", 0.9, r"ich (?:arbeite|studiere|unterrichte) |ich bin (?:von beruf )?(?:\w+ )?\w*(?:lehrer|ärztin|arzt|ingenieur"
     r"|entwickler|architekt|designer|krankenpfleger|krankenschwester|student|köch|koch|autor|fotograf)(?:in)?"),
    ("relation", 0.9, r"meine? (?:\w+ )?(?:<familie>)(?: <name>)? (?:ist|sind|war|hat|haben|heißt|wohnt|lebt|arbeitet|kommt"
     r"|feiert|wird|mag|liebt|isst|zieht|studiert)|ich habe (?:\w+ )?(?:eine?n?|zwei|drei|keine) (?:\w+ )?(?:<familie>)"),
    ("preference", 0.85, r"ich (?:mag|liebe|hasse|bevorzuge) (?!dich|euch|das\b|es\b|ihn\b|sie\b)|meine? lieblings\w+"),
    ("preference", 0.85, r"ich \w+ (?:sehr |besonders )?(?:gern|gerne|lieber|am liebsten)"),
    ("skill", 0.75, r"ich (?:spreche|spiele|lerne) (?!das\b|es\b)\w+"),
    ("plan", 0.75, r"ich (?:fliege|fahre|reise|ziehe|besuche|treffe|heirate|beginne|fange|gehe|mache|habe) .*(?:<bald>)"),
    ("plan", 0.75, r"(?:<bald>).*? (?:fliege|fahre|reise|ziehe|besuche|treffe|heirate|beginne|habe|gehe|mache|koche) ich"),
    ("goal", 0.6, r"ich (?:möchte|will|plane) (?!nur|wissen|fragen|sagen).*(?:lernen|werden|reisen|fliegen|kaufen|besuchen"
     r"|ziehen|schreiben)"),
    ("event", 0.75, r"(?:<neulich>).*? (?:habe|hab|bin|war) ich|ich (?:habe|hab|bin|war) .*(?:<neulich>)"),
)  # fmt: skip
