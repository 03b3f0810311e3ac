"""The slots of German: the verb stands before its subject as often as after it, and at the end in the perfect."""

from __future__ import annotations

import re

from memstore.ingest.rules.medicines import GERMAN_MEDICINE
from memstore.ingest.rules.slotbook import Contrast, Grammar, Subject, for_a_while, table, words
from memstore.ingest.rules.word_lists import GERMAN_AMOUNTS, GERMAN_JOBS

_WORDS = {
    "kin": r"mutter|mama|vater|papa|eltern|schwester|bruder|sohn|tochter|frau|mann|partner(?:in)?|freund(?:in)?|tante"
    r"|onkel|oma|opa|cousine?|nichte|neffe|chef(?:in)?|kolleg(?:e|in)|nachbar(?:in)?|mitbewohner(?:in)?",
    # One of its kind: "an der Uniklinik", where "in der Klinik" may be any.
    "house": r"(?-i:[A-ZÄÖÜ])[a-zäöüß]{2,}(?:klinik(?:um)?|krankenhaus|universität|hochschule|sparkasse)",
    "diet": r"vegan(?:er(?:in)?)?|vegetarier(?:in)?|vegetarisch|pescetarier(?:in)?|flexitarier(?:in)?",
    "married": r"ledig|verheiratet|geschieden|verlobt|verwitwet|single|getrennt",
    "job": GERMAN_JOBS,
    "pet": r"hund|hündin|katze|kater|hamster|kaninchen|pferd|papagei|schildkröte|wellensittich|meerschweinchen|vogel",
    "thing": r"fahrrad|motorrad|haus|wohnung|gitarre|klavier|geige|kamera|boot|roller|wohnmobil|e-bike|garten",
    "tongue": r"deutsch|englisch|französisch|spanisch|italienisch|portugiesisch|niederländisch|polnisch|russisch"
    r"|chinesisch|japanisch|türkisch|arabisch|schwedisch|dänisch|griechisch|tschechisch|ukrainisch",
    "measured": GERMAN_AMOUNTS,
    "amount": r"(?:[$€£] ?)?\d+(?:[.' ]\d{3})*(?:,\d{1,2})?(?: ?(?:tausend|millionen))?(?: ?(?:[%$€£]|(?:kg|km|cm|m"
    r"|eur|euro"
    r"|dollar|franken|pfund|kilo|prozent|stunden)(?!\w)))?(?: (?:im monat|im jahr|pro \w+|brutto|netto|warm|kalt))*",
    "month": r"januar|februar|märz|april|mai|juni|juli|august|september|oktober|november|dezember",
    "date": r"(?:nächste[nmrs]? |diese[nmrs]? |kommende[nmrs]? )?(?:(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch"
    r"|woche"
    r"|monat|jahr|sommer|herbst|winter|frühling)(?:abend|morgen|nachmittag)?|\d{1,2}\. ?(?:(?:<month>)|\d{1,2}\.)?"
    r"|(?:<month>)|morgen|übermorgen|heute|\d{1,2}(?::\d\d)? uhr|\d{1,2}:\d\d",
    "dates": r"<date>(?:,? (?:um |am |den |im )?(?:<date>|20\d\d)){0,3}",
    "event": r"[\w-]*(?:termin|prüfung|klausur|treffen|besprechung|hochzeit|flug|reise|urlaub|umzug|konzert|operation"
    r"|op"
    r"|gespräch|party|feier|kurs|rennen|abgabe|präsentation|vortrag|besichtigung|turnier|konferenz|lauf|meeting"
    r"|anprobe|taufe|trauung|beerdigung|sitzung|(?<!an)probe|aufführung|übergabe|untersuchung"
    r"|impfung|fest|training|einschulung|wettkampf)",
    "the": r"der|die|das|den|mein|meine|meinen|unser|unsere|unseren",
    "moved": r"(?:vor)?verlegt|verschoben|vorgezogen|umgebucht|(?:um)?gelegt|(?:vor)?geschoben",
}
_WORDS["schule"] = (
    r"(?!(?:die|der|das|eine?|meine?)\b)[\w-]+ (?:schule|gymnasium|hochschule|universität)"
    r"|(?:\w*schule|gymnasium|kanti|uni(?:versität)?|lyzeum|tu|eth|fh) (?!student|schüler|lehrer|mitarbeit|professor"
    r"|dozent|assisten|mitglied|klasse|\w+tags?\b)(?-i:[A-ZÄÖÜ])[\w-]+"  # "Ich bin an der Uni Student"
    r"|(?-i:[A-ZÄÖÜ])[\w-]*-(?:schule|gymnasium|universität)"
)
_WORDS["kost"] = r"low[- ]?carb|keto(?:gen)?|paleo|mediterran|atkins"
_I = r"(?:ich|wir)"
_SUBJECT = Subject(
    first=_I,
    inverted=_I,
    third=r"(?:mein|unser)(?:e[nmr]?)? (?:(?:kleine|große|ältere|jüngere|beste"
    r"|neue)[rn]? )?(?:<kin>)(?: (?-i:[A-Z])\w+)?"
    r"|(?!(?:Ich|Er|Sie|Es|Das|Wir|Ihr|Der|Die|Wer|Was|Mein|Meine|Unser|Unsere|Man|Nichts"
    r"|Alles)\b)(?-i:[A-ZÄÖÜ][a-zäöüß]+)(?:(?<=s)'? (?:<kin>))?",
    adverbs=r"(?: (?:jetzt|nun|auch|gerade|weiterhin|nach wie vor|trotzdem|inzwischen|mittlerweile|wieder|seit \w+(?:"
    r" (?!kein|nicht|in|bei|als)\w+)?"
    r"|noch|immer|schon|aktuell"
    r"|derzeit|momentan|eigentlich|übrigens|sehr|wirklich|gern|gerne|endlich|letzten? \w+|ab \w+|diese \w+"
    r"|nur|ja|doch|total|heute|leider|im \w+|für den \w+|für die \w+|für (?:eine?n?|zwei|drei|vier|\d+) \w+"
    r"|bis (?:zum |zur )?(?:ende |anfang |mitte )?[\w.]+(?:"
    r" (?:januar|februar|märz|april|mai|juni|juli|august|september|oktober|november|dezember))?))* ",
)
_ROWS = (
    ("school!", "", r"<S:bin|habe/ist|hat>(?:von [^,]{1,30}? )?(?:an die|an das|ans|auf die|auf das|aufs|zur|zum)"
     r" (?P<v><schule>) gewechselt"),
    ("school", "", r"<S:gehe|bin|studiere|wechsle/geht|ist|studiert|wechselt>(?:in der \w+ klasse )?(?:auf das|auf"
     r" die|auf dem"
     r"|auf der|an das|an die|an der|an dem|in die|in der|aufs|ans|am|zur|zum|im|ins) (?P<v><schule>)"),
    ("school", "", r"<S:besuche/besucht>(?:die |das )?(?P<v><schule>)"),
    ("person/{t}", "", r"(?:mein|unser)e? (?:(?:neue|jetzige|aktuelle)r? )?(?P<t>\w*(?:lehrer|trainer|chef|arzt|ärztin"
     r"|therapeut|vermieter|professor))(?:in)? (?:(?:ist|heißt)(?: jetzt| nun)? (?P<v>(?:(?:herr|frau"
     r"|dr\.?|prof\.?) )+\w+)"
     r"|heißt(?: jetzt| nun)? (?P<v>(?-i:[A-ZÄÖÜ])\w+(?: (?-i:[A-ZÄÖÜ])\w+)?))"),
    ("former/residence", "", r"<S:wohne|lebe|wohnen|leben/wohnt|lebt>nicht mehr in <V>"),
    ("former/employer!", "", r"<S:arbeite|arbeiten/arbeitet>nicht mehr (?:bei|für) <V>"),
    ("former/job!", "", r"<S:arbeite/arbeitet>nicht mehr als <V>"),
    ("former/employer!", "", r"<S:habe|hab/hat>(?:meinen |seinen |ihren )?(?:job |stelle )?bei (?P<v>[^,.!?]{2,40}?)"
     r" (?:gekündigt|aufgehört)"),
    ("former/employer!", "", r"<S:habe|hab/hat>(?:\w+ ){0,2}?(?:an der|in der|am|im) (?P<v><house>)"
     r" (?:gekündigt|aufgehört)"),
    ("former/employer!", "*", r"<S:habe|hab|wurde|bin/hat|wurde>(?:meinen job |meine stelle )?(?:gekündigt|entlassen"
     r"|verloren)"),
    ("former/studies!", "", r"<S:studiere/studiert>nicht mehr <V>"),
    ("former/diet", "", r"<S:bin/ist>(?:nicht mehr |kein(?:e)? )(?P<v><diet>)(?: mehr)?"),
    ("former/partner!", "", r"<S:habe mich|hab mich>von (?P<v>\w+) getrennt|(?P<v>(?-i:[A-ZÄÖÜ])\w+) und ich (?:haben"
     r" uns|sind|haben) (?:\w+ ){0,2}?(?:getrennt|nicht mehr zusammen|schluss gemacht)"
     r"|(?P<v>(?-i:[A-ZÄÖÜ])\w+) ist nicht"
     r" mehr mein(?:e)? (?:freund(?:in)?|partner(?:in)?|mann|frau|verlobter?)"),
    ("marital_status!", "geschieden", r"(?:(?:(?-i:[A-ZÄÖÜ])\w+ und )?(?:ich|wir) (?:habe|haben) (?:uns|mich) (?:\w+"
     r" ){0,2}?scheiden lassen)"),
    ("former/marital_status!", "verlobt", r"(?:ich|wir) (?:habe|haben) (?:unsere|die) (?:hochzeit"
     r"|verlobung) (?:abgesagt"
     r"|gelöst)|(?:habe|haben) (?:ich|wir) (?:unsere|die) (?:hochzeit|verlobung) (?:abgesagt|gelöst)"),
    ("partner", "", r"(?!(?:Das|Er|Sie|Es|Dies|Wer|Hier)\b)(?P<v>(?-i:[A-ZÄÖÜ])\w+) ist mein(?:e)? (?:fester? "
     r"|neuer? )?(?:freundin|partner(?:in)?|mann|frau|verlobter?|fester freund|neuer freund)(?=[.,!]|$| und| seit)"),
    ("former/habit/{t}!", "*", r"(?:ich|wir) (?:gehe|gehen) nicht mehr (?P<t>(?-i:[a-zäöüß])\w{2,}(?:en|ern|eln)"
     r"|(?:zum|zur|ins"
     r"|in den) \w+)(?=[.,!]|$)"),
    ("habit/{t}!", "", r"(?:ab jetzt|von jetzt an|künftig|ab sofort) (?:gehe|gehen) (?:ich|wir) (?:immer )?(?:jeden |am"
     r" |immer )?(?P<v>(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch)s? (?P<t>(?-i:[a-zäöüß])\w{2,}(?:en|ern|eln))"),
    ("+habit/{t}", "", r"(?:ich|wir) (?:gehe|gehen) (?:immer )?(?:jeden |am |immer )?(?P<v>(?:mon|diens|donners"
     r"|frei|sams"
     r"|sonn)tag|mittwoch)s? (?:immer )?(?P<t>(?-i:[a-zäöüß])\w{2,}(?:en|ern|eln))"),
    ("former/diet", "", r"<S:bin/ist>nicht (?P<v><diet>)"),
    ("former/marital_status", "", r"<S:bin|sind/ist>nicht (?:mehr )?(?P<v><married>)"),
    ("former/partner!", "*", r"(?:mein freund|meine freundin|mein mann|meine frau) hat (?:sich von mir getrennt|mich"
     r" verlassen|mit mir schluss gemacht)|(?P<v>(?-i:[A-Z])\w+) hat (?:sich von mir getrennt|mich verlassen|mit mir"
     r" schluss gemacht)"),
    ("former/partner!", "*", r"wir haben uns getrennt"),
    ("former/pet/{t}!", "*", r"(?P<before>ist )?(?:mein|meine|unser|unsere) (?P<t><pet>)(?: (?-i:[A-Z])\w+)?"
     r" (?(before)|ist )(?:(?!nicht |fast |beinahe )\w+ ){0,5}?(?:gestorben|verstorben|weggelaufen|tot)"),
    ("former/pet/{t}!", "*", r"(?:mein|meine|unser|unsere) (?P<t><pet>)(?: (?-i:[A-Z])\w+)? (?:ver)?starb"),
    ("former/car!", "*", r"<S:habe|hab|haben/hat>(?:mein|unser|das) auto (?:verkauft|abgegeben|abgeschafft)"),
    ("former/{plan}!", "*", r"(?:<the>) (?P<t><event>(?: mit (?-i:[A-Z])\w+)?) (?:ist|wurde|fällt) (?:abgesagt|aus"
     r"|gestrichen)"),
    ("residence", "", r"<S:wohne|lebe|wohnen|leben/wohnt|lebt>(?:(?:zusammen )?mit [^,.]{2,40}? )?in <V>"),
    ("residence!", "", r"<S:bin|sind/ist>(?:[\w.]+ ){0,3}?nach (?P<v>[^,.!?]{2,40}?) (?:um|zurück)?gezogen"),
    ("residence", "", r"(?:ich bin|bin ich|wir sind|sind wir) (?:jetzt |nun |endlich )?(?:wieder )?(?:zurück|daheim) in"
     r" <V>"),
    ("@residence", "", r"(?:ich bin|bin ich|wir sind|sind wir) (?:\w+ ){0,3}?in <V>"),
    ("hometown", "", r"<S:komme|stamme/kommt|stammt>(?:ursprünglich )?aus <V>"),
    ("hometown", "", r"<S:bin|wurde/ist|wurde>in (?P<v>[^,.!?]{2,40}?) (?:geboren|aufgewachsen)"),
    ("job", "", r"<S:arbeite/arbeitet>als <V>"),
    ("job", "", r"<S:bin/ist>(?:von beruf )?(?:eine? )?(?P<v><job>)(?! (?:von|der))"),
    ("job", "", r"<S:bin|arbeite/ist|arbeitet>(?P<v>selbstständig|selbständig|freiberuflich|arbeitslos)"),
    ("job!", "", r"<S:habe|hab/hat>(?:eine? )?(?:neue |neuen )?(?:stelle|job) als (?P<v>\w+)"),
    ("employer", "", r"<S:arbeite|arbeiten/arbeitet>(?:bei|für) <V>"),
    ("employer", "", r"<S:arbeite|arbeiten/arbeitet>(?:in|an) (?:der|dem)"
     r" (?P<v>(?:\w*praxis|kanzlei|\w*klinik|firma|agentur|\w*schule|universität|bäckerei|apotheke|\w*krankenhaus)"
     r" (?-i:[A-ZÄÖÜ])[^,;:!?]{1,40}?)(?=[.,;:!?]*$| (?:als|mit|seit|und|aber|für)(?!\w)|[,;:!?])"),
    ("employer", "", r"<S:arbeite|arbeiten/arbeitet>(?:an der|in der|am|im) (?P<v><house>)"
     r"(?=[.,;:!?]|$| (?:als|mit|seit|und|aber|für)(?!\w))"),
    ("employer!", "", r"<S:habe|hab/hat>(?:\w+ ){0,2}?bei (?P<v>[^,.!?]{2,40}?) (?:angefangen|begonnen)"),
    ("employer!", "", r"<S:bin/ist>(?:\w+ ){0,2}?zu (?P<v>[^,.!?]{2,40}?) gewechselt"),
    ("studies", "", r"<S:studiere/studiert>(?!nicht|in|an|noch|seit|im)<V>"),
    ("diet", "", r"<S:bin|lebe|esse|ernähre mich/ist|lebt|isst>(?:eine? )?(?P<v><diet>)(?: geworden)?"),
    ("diet!", "omnivore", r"<S:esse|essen/isst>fleisch"),
    ("diet!", "vegetarier", r"<S:esse|essen/isst>kein fleisch(?: mehr)?"),
    ("eats/{t}", "no", r"<S:esse|essen/isst>kein(?:e|en)? (?P<t>\w+)(?: mehr)?"),
    ("eats/{t}", "yes", r"(?:(?:esse|essen) (?:ich|wir)|(?:ich|wir) (?:esse|essen)|(?P<who><kin>"
        r"|(?-i:[A-ZÄÖÜ][a-zäöüß]+)) isst)"
     r" (?:\w+ )?wieder (?:auch )?(?P<t>(?-i:[A-ZÄÖÜ])\w+)"),
    ("petname/{t}", "", r"(?:mein|meine|unser|unsere) (?P<t><pet>) heißt (?P<v>\w+)"),
    ("name", "", r"<S:heiße|heisse/heißt|heisst>(?:\w+ )?<V>|mein name ist <V>"),
    ("name", "", r"(?<!hier )ich bin (?P<v>(?!(?:\w+sche[rnms]?|anfang|mitte|ende|team"
     r"|projekt) )(?-i:[A-ZÄÖÜ][a-zäöüß-]\S*) (?!(?:<job>|fan|mitglied|leiter(?:in)?|anhänger(?:in)?|typ)(?!\w))"
     r"(?-i:[A-ZÄÖÜ][a-zäöüß-][\w'-]*))"
     r"(?=[.!]*$)"),
    ("surname", "", r"mein (?:neuer )?(?:nachname|familienname) (?:ist|lautet) (?:jetzt |nun )?<V>"),
    ("nickname", "", r"(?:nenn|nennt) mich (?:bitte )?(?:einfach )?<V>"),
    ("amount/{t}", "", r"(?:(?:mein|unser)e? (?:neue[rs]? |aktuelle[rs]? )?(?P<t><measured>)|^(?P<t><measured>)|das"
        r" (?P<t>\w*budget)) (?:ist|beträgt|liegt)"
     r" (?:jetzt |nun |inzwischen |aktuell |bei |auf |etwa |höchstens )*(?P<v><amount>)"),
    ("age", "", r"<S:bin|wurde/ist|wurde>(?P<v>\d{1,3})(?: jahre alt| geworden)"),
    ("age", "", r"(?!(?:<measured>) )<S:bin|wurde/ist|wurde>(?P<v>(?:1[01]|[1-9])?\d)(?= jahre| geworden|[,.](?!\d)|!"
        r"|$)"),
    ("birthday", "", r"mein geburtstag ist (?:eigentlich )?(?:am )?(?P<v>\d{1,2}\. ?\w+)"),
    ("birthday", "", r"<S:habe|hab>am (?P<v>\d{1,2}\. ?\w+) geburtstag"),
    ("marital_status", "", r"<S:bin|sind/ist>(?P<v><married>)"),
    ("marital_status!", "verheiratet", r"<S:habe|haben/hat>(?:\w+ ){0,2}geheiratet"),
    ("partner", "", r"<S:bin/ist>mit (?P<v>\w+) (?:zusammen|verheiratet|verlobt)"),
    ("phone", "", r"meine (?:neue )?(?:handy|telefon)?nummer ist (?:jetzt |nun )?(?P<v>\+?\d[\d /()-]{4,20}\d)"),
    ("email", "", r"meine (?:neue )?e-?mail(?:-?adresse)? ist (?P<v>[\w.+-]+@[\w-]+\.[\w.-]*\w)"),
    ("address", "", r"(?:meine|unsere) (?:neue |private )?(?:adresse|anschrift) ist (?:jetzt )?<V>"),
    ("language/{t}", "yes", r"<S:spreche/spricht>(?:fließend |etwas |gut )?(?P<t><tongue>)"),
    ("answers/language", "", r"(?:bitte )?(?:antworte|antworten sie|schreib|schreibe)(?: mir)?(?: ab jetzt| bitte|"
     r" immer)*(?: (?:kurz|knapp|einfach|freundlich),?(?: und)?)? auf (?P<v><tongue>)"),
    ("favourite/{t}", "", r"meine? lieblings(?P<t>\w+) (?:ist|sind) (?:jetzt |inzwischen |nun |mittlerweile )?<V>"),
    ("allergy/{t}", "yes", r"<S:bin/ist>nicht (?:nur|bloß|allein) allergisch gegen <T>"),
    ("allergy/{t}", "no", r"<S:bin/ist>nicht (?:mehr )?(?:(?:wirklich|eigentlich|auch|tatsächlich|selbst|übrigens)"
     r" )?allergisch gegen <T>"),
    ("allergy/{t}", "no", r"<S:habe|hab/hat>keine (?P<t>\w+)allergie(?: mehr)?"),
    ("allergy/{t}", "yes", r"<S:bin/ist>(?:\w+ )?allergisch gegen <T>"),
    ("allergy/{t}", "yes", r"<S:habe|hab/hat>eine (?P<t>\w+)allergie"),
    ("pregnancy!", "no", r"<S:habe|hab|haben/hat>(?:gestern |letzte \w+ |leider )?(?:das|unser|mein|ihr) (?:baby"
     r"|kind) verloren"
     r"|<S:hatte|hatten/hatte>(?:gestern |letzte \w+ |leider )?eine (?:fehl|tot)geburt(?! vor )"
     r"|<S:bin/ist>nicht (?:mehr )?schwanger"),
    ("pregnancy", "due", r"<S:bin|sind/ist>(?:(?!nicht\b)\w+ ){0,3}?schwanger"),
    ("former/regimen!", "", r"<S:mache|esse|lebe/macht|isst|lebt>(?:keine? |nicht mehr"
     r" )(?P<v><kost>)(?:[- ]?diät)?(?: mehr)?"
     r"|<S:habe|hab/hat>(?:mit )?(?:der |die )?(?P<v><kost>)(?:[- ]?diät)? (?:aufgehört|aufgegeben|beendet"
     r"|abgebrochen)"),
    ("regimen", "", r"<S:mache|esse|lebe|ernähre mich|bin auf/macht|isst|lebt|ernährt sich>(?:eine |die )?(?P<v><kost>)"
     r"(?:[- ]?diät)?"),
    ("medication/{t}!", "no", rf"<S:nehme/nimmt>(?:kein(?:e|en)? (?P<t>{GERMAN_MEDICINE})(?: mehr)?|(?:das |mein "
     rf"|meine )?"
     rf"(?P<t>{GERMAN_MEDICINE}) nicht mehr)"),
    ("medication/{t}!", "no", rf"<S:habe|hab/hat>(?:das |mein |meine )?(?P<t>{GERMAN_MEDICINE}) (?:endlich"
     rf" )?abgesetzt"),
    ("medication/{t}", "yes", rf"<S:nehme/nimmt>(?:(?:täglich|morgens|abends|jeden \w+|\w+mal (?:täglich|am tag)|\d+ mg"
     rf"|mein|meine) )?(?P<t>{GERMAN_MEDICINE})"),
    ("likes/{t}", "no", r"<S:mag|liebe|mögen/mag|liebt>(?:kein(?:e|en)? |nicht mehr )<T>(?: mehr)?"),
    ("likes/{t}", "no", r"<S:mag|liebe/mag|liebt>(?P<t>\w+) (?:überhaupt |gar )?nicht(?: mehr)?"),
    ("likes/{t}", "no", r"<S:hasse/hasst><T>"),
    ("likes/{t}", "yes", r"<S:mag|liebe|mögen/mag|liebt>(?!nicht|kein)<T>"),
    ("smoking", "no", r"<S:habe|hab/hat>(?:\w+ ){0,2}(?:mit dem rauchen aufgehört|das rauchen aufgegeben|aufgehört zu"
     r" rauchen)"),
    ("smoking", "no", r"<S:rauche/raucht>nicht(?: mehr)?|ich bin nichtraucher(?:in)?"),
    ("smoking", "yes", r"<S:rauche/raucht>(?=wieder|viel|täglich|\d)|ich rauche(?: wieder)?(?=[.,!]|$)|ich bin"
     r" raucher(?:in)?"),
    ("drinking", "no", r"<S:trinke/trinkt>kein(?:en)? alkohol(?: mehr)?"),
    ("drinking", "yes", r"<S:trinke/trinkt>(?:wieder )?(?:alkohol|wein|bier)"),
    ("pet/{t}", "yes", r"<S:habe|haben/hat>(?:eine?n? )(?:\w+ ){0,2}?(?P<t><pet>)"),
    ("car", "", r"<S:fahre/fährt>einen? (?:neuen |alten )?(?P<v>(?-i:[A-Z])\w+)"),
    ("owns/{t}", "no", r"<S:habe|hab|haben/hat>(?:mein|meine|meinen|unser|unsere) (?P<t><thing>) (?:verkauft"
     r"|verschenkt)"),
    ("owns/{t}", "yes", r"<S:habe|besitze|haben/hat>(?:eine?n? )(?:\w+ )?(?P<t><thing>)(?: gekauft)?"),
    ("{plan}~", "", r"(?:<the>) (?P<t><event>(?: mit (?-i:[A-Z])\w+)?)(?: (?:bei|in|zur|zum) [^,;]{1,30}?)? (?:wurde"
        r"|ist|wird) (?:[\w.]+ ){0,4}?auf (?:den "
     r"|die )?(?P<v><dates>)"
     r" (?:<moved>)"),
    ("{plan}~", "", r"(?:<the>) (?P<t><event>(?: mit (?-i:[A-Z])\w+)?)(?: (?:bei|in|zur|zum) [^,;]{1,30}?)? (?:wurde"
        r"|ist|wird) (?:\w+ ){0,2}?(?:<moved>)"
     r" (?:worden )?auf (?:den |die )?(?P<v><dates>)"),
    ("{plan}~", "", r"(?:habe|haben|hat) (?:ich |wir )?(?:<the>) (?P<t><event>(?: mit (?-i:[A-Z])\w+)?) auf (?:den "
     r"|die )?(?P<v><dates>)"
     r" (?:<moved>)"),
    ("{plan}", "", r"(?:<the>) (?P<t><event>(?: mit (?-i:[A-Z])\w+)?)(?: (?:mit|bei|in) [^,]{1,30}?)? (?:ist|findet"
     r"|beginnt|geht) (?:jetzt "
     r"|nun |erst |schon |doch )*(?:am |im |um |den )?(?P<v><dates>)"),
    ("+{plan}", "", r"(?:am|im) (?P<v><dates>) (?:habe|haben) (?:ich|wir) (?:eine?n?|<the>) (?P<t><event>)"),
    ("+{plan}", "", r"<S:habe|hab|haben>(?:am |im )?(?P<v><dates>) (?:eine?n? )(?P<t><event>(?: mit (?-i:[A-Z])\w+)?)"),
)  # fmt: skip
_ENDS = (
    r"und|aber|weil|seit|mit|für|jetzt|nun|wieder|in|am|im|an|auf|bei|bis|nach|vor|wenn|wo|die|der|das|den|auch|nicht"
    r"|mehr"
    r"|als|sehr|gern|gerne|geworden|gezogen|über|lieber|zusammen|schon|noch|total|überhaupt|bitte|von|zu|ist|zurzeit"
)
GERMAN = Grammar(
    rules=table(_ROWS, _SUBJECT, _ENDS, _WORDS),
    unreal=words(r"würde\w*|könnte\w*|hätte\w*|wäre\w*|sollte\w*|vielleicht|möglicherweise|wahrscheinlich|fast"
    r"|eventuell"
                 r"|möchte|will|überlege|denke darüber nach|scherz|angeblich"),
    doubtful=words(r"wenn|falls|ob|stell dir vor|stellt euch vor|angenommen|nehmen wir(?: mal)? an|sagen wir"
                   r"|ich (?:hoffe|dachte|glaubte),?(?: dass)? (?:ich|mein\w*)|hypothetisch|theoretisch"
    r"|wünschte"
                   r"|in (?:der|dem|meinem|meiner) (?:geschichte|roman|spiel|buch|film|traum)|im (?:spiel|roman|film"
                   r"|traum)"),
    reported=words(r"(?:er|(?-i:sie|Sie)|man|meine? \w+|(?!Ich)(?-i:[A-ZÄÖÜ])\w+|jemand) (?:sagt|sagte|meint|meinte"
     r"|glaubt|glaubte"
                   r"|denkt|behauptet|behauptete|schrieb|schreibt|erzählt|erzählte)|laut|gerüchte"),
    subordinate=words(r"(?:wo|wer|was|wie|warum|dass ich gesagt habe|bevor|als|während|obwohl man|ob|nachdem|bis|von"
        r"|vom|mit|ohne"
     r"|für|gegen|neben|über) *$"),  # "die Mutter von Jonas ist"
    temporary=for_a_while(r"(?-i:diese[nsr]?) (?:woche|wochenende|monat|sommer|winter|tage)|übers wochenende"
        r"|am wochenende"
    r"|im moment|bis (?:zum |zur )?(?:ende |anfang |mitte )?(?:nächste\w* |diese\w* )?(?:\w+tag|\d+\.|januar|februar"
    r"|märz"
    r"|april|mai|juni|juli|august|september|oktober|november|dezember|jahres\w+|weihnachten|ostern|woche|monat|jahr"
    r"|frühling|sommer|herbst|winter)"
                    r"|momentan|vorübergehend|zurzeit nur|für (?:ein|eine|einen|zwei|drei|vier|ein paar|den|die|das"
                    r"|\d+)"
                    r" (?:\w+ )?(?:tage?|woche\w*|monate?|sommer|winter|semester|wochenende|zeit)|heute|nur bis|bis"
                    r" (?:\w+ )?\w+tag"
                    r"|zu besuch|im urlaub|auf dienstreise|vorerst|in der fastenzeit"),
    corrects=words(r"^(?:nein|nee|sorry|entschuldigung|korrektur|ich meinte|quatsch|halt|moment|pardon|verzeihung|doch"
    r" nicht|.*doch (?:erst|schon)(?= ))"),
    meant=re.compile(r"(?:^|\b)(?:(?:sorry|nein|nee|entschuldigung|korrektur|quatsch)[,:;.!— –-]+)*(?:ich meinte|ich"
    r" meine)"
                     r" (?:am |um |den |im )?(?P<v>[^,.;!?]{1,40}?)(?:,? (?:nicht|statt) [^.;!?]{1,40})?[.!]*$",
                     re.IGNORECASE),
    also=words(r"auch|nebenbei|zusätzlich|außerdem|ehrenamtlich|nebenher|zweitjob|nebenjob"),
    no_value=words(r"^(?:es|das|dich|euch|ihn|sie|ihr|dir|mir|uns|wie|was|wenn|dass|deine?\w*|meine?\w*|eine[rmn]?|ein"
    r"|unsere?\w*"
                   r"|dem|hier|dort|dieser?|diesem|kein\w*|nicht|der (?:nähe|stadt|regel))"),
    article=words(r"^(?:der|die|das|den|eine?n?|am|im)(?= )"),
    next_clause=re.compile(r"\s*[,;:—–]\s+|\s[-–—]\s|\s+(?:und|aber|denn|doch|sondern)\s+(?=(?:ich(?! (?:haben uns"
    r"|sind))|wir|meine?|unsere?|jetzt|bin|habe|"
                           r"wohne|wohnt|lebe|lebt|arbeite|arbeitet|spreche|der|die|das)\b)", re.IGNORECASE),
    asks=words(
        r"^(?:(?:bitte|kannst du|könntest du|können sie|und|jetzt|dann|mir|ich möchte dass du)[, ]+)*(?:(?:schreib"
        r"|schreibe|schreiben sie)(?! (?:mir )?(?:bitte |immer |ab jetzt )*auf )|übersetze?|sage?|erinnere|buche?"
        r"|reserviere?|bestelle?|storniere?|frage?|formuliere|verfasse|korrigiere|plane|suche?|finde|erstelle|fasse)"
    ),
    hearsay=re.compile(
        r"(?P<before>(?:(?:der|die|mein|meine|unser|unsere|ein|eine) (?:[\w-]+ ){0,2}?[\w-]+|er|sie|man|jemand"
        r"|(?-i:[A-ZÄÖÜ])[\w-]+)"
        r" (?:(?:auch|immer|jetzt|noch) )*(?:sagte?n?|meinte?n?|glaubt|glauben|denkt|denken|behaupte(?:t|n)"
        r"|(?:hat|haben) (?:mir )?(?:gesagt|gemeint|bestätigt|festgestellt|herausgefunden)),? )(?P<own>ich)"
        r" (?P<rest>(?:bin|habe?) .*)",
        re.IGNORECASE,
    ),
    contrasts=(
        Contrast(
            re.compile(
                r"(?<!\w)(?P<what>meine (?:handy|telefon)?(?:nummer|adresse)|meine e-?mail(?:-?adresse)?) hat sich"
                r" geändert\s*[,:;—–-]+\s*(?:sie|die neue) (?:ist|lautet) (?=\S)",
                re.IGNORECASE,
            ),
            r"\g<what> ist ",
        ),
        Contrast(
            re.compile(
                r"(?<!\w)(?:doch )?nicht (?P<prep>in|am|bei|als|auf|um|im|an|gegen|mit|aus|den"
                r"|nach) [^;]{1,40}?,? sondern"
                r" (?:erst |schon |jetzt )*(?=(?:in|am|bei|als|auf|um|im|an|gegen|mit|aus|den|nach) )"
                r"|(?<!\w)(?:doch )?nicht"
                r" [\w-]+,? sondern (?=\w)",
                re.IGNORECASE,
            ),
            "",
        ),
    ),
)  # fmt: skip
