"""The slots of French: elided subjects, and denials that stand around the verb."""

from __future__ import annotations

import re

from memstore.ingest.rules.slotbook import Contrast, Grammar, Subject, for_a_while, table, words

_WORDS = {
    "kin": r"mère|maman|père|papa|parents|sœur|soeur|frère|fils|fille|femme|mari|copine|copain|compagne|compagnon|tante"
    r"|oncle|cousine?|grand-mère|grand-père|nièce|neveu|amie?|collègue|patronne?|voisine?|coloc\w*",
    "diet": r"vég[ae]n(?:e|ienne|ien)?|végétalien(?:ne)?|végétarien(?:ne)?|pesc[oé]-?végétarien(?:ne)?"
    r"|flexitarien(?:ne)?|omnivore",
    "married": r"célibataire|mariée?s?|divorcée?s?|fiancée?s?|veuf|veuve|séparée?s?|pacsée?s?",
    "job": r"infirmi(?:er|ère)|professeure?|prof|médecin|ingénieure?|développeu(?:r|se)|avocate?|serveu(?:r|se)"
    r"|cuisini(?:er|ère)"
    r"|boulang(?:er|ère)|architecte|journaliste|étudiante?|coiffeu(?:r|se)|juge|comptable|graphiste|musicien(?:ne)?"
    r"|instit(?:uteur|utrice)|vendeu(?:r|se)|pharmacien(?:ne)?|traduct(?:eur|rice)|photographe|pilote|facteur|factrice"
    r"|libraire|kinésithérapeute|dentiste|psychologue|menuisi(?:er|ère)|jardini(?:er|ère)|chercheu(?:r|se)|sage-femme",
    "pet": r"chien(?:ne)?|chat(?:te)?|lapin|hamster|cheval|perroquet|tortue|perruche|oiseau|cochon d'inde",
    "thing": r"vélo|moto|maison|appartement|guitare|piano|violon|caméra|bateau|scooter|camping-car|jardin",
    "tongue": r"français|anglais|allemand|espagnol|italien|portugais|néerlandais|polonais|russe|chinois|japonais|arabe"
    r"|turc"
    r"|suédois|danois|grec|tchèque|ukrainien|breton|basque|catalan",
    "month": r"janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre",
    "date": r"(?:lun|mar|mercre|jeu|vendre|same)di(?: prochain| soir| matin| après-midi)?|dimanche(?: prochain| soir|"
    r" matin)?"
    r"|(?:\d{1,2}(?:er)? )?(?:<month>)|\d{1,2}(?= ?(?:à|$|[.,!]))|demain|après-demain|(?:la semaine|le mois|l'année)"
    r" prochaine?|\d{1,2} ?h(?:eures)?(?: ?\d\d)?|midi|(?:le printemps|l'été|l'automne|l'hiver)",
    "dates": r"<date>(?:,? (?:à |le |en |au )?(?:<date>|20\d\d)){0,3}",
    "event": r"examen|réunion|rendez-vous(?: (?:chez|avec) (?:le |la |l')?\w+)?|mariage|vol|voyage|entretien|concert"
    r"|opération"
    r"|fête|cours|course|présentation|soutenance|déménagement|conférence|match|tournoi|partiel|visite|départ|train",
    "the": r"(?:le |la |l'|mon |ma |notre )",
    "moved": r"reportée?|déplacée?|avancée?|décalée?|repoussée?|changée?",
}
_SUBJECT = Subject(
    first=r"(?<!que )(?:je (?:n'|m')?|j'|nous |on )(?:y )?",
    inverted="",
    third=r"(?:mon|ma|mes|notre|nos) (?:(?:petite?|grande?|meilleure?) )?(?:<kin>)(?: (?-i:[A-Z])\w+)?"
    r"|(?!(?:Il|Elle|On|Je|Nous|Vous|Tu|Ce|Le|La|Les|Un|Une|Mon|Ma|Mes|Notre|Nos|Qui)\b)(?-i:[A-ZÉ][a-zà-ÿ]+)",
    adverbs=r"(?: ?(?:maintenant|aussi|désormais|toujours|actuellement|vraiment|beaucoup|enfin|déjà|bien|juste|encore"
    r"|vient de|viens de|récemment|finalement|vraiment|suis|ai|a|est|me suis|s'est|avons|à nouveau|de nouveau)(?!\w))*"
    r" ?",
)
_ROWS = (
    ("former/residence", "", r"(?:je n'habite|je ne vis|on n'habite|nous n'habitons) plus (?:à|en|au|aux|dans) <V>"),
    ("former/residence!", "", r"<S:quitté/quitté>(?-i:(?=[A-Z]))<V>"),
    ("former/employer!", "", r"je ne travaille plus (?:chez|pour|à) <V>"),
    ("former/job!", "", r"je ne (?:travaille|suis) plus (?:comme )?(?P<v><job>)"),
    ("former/employer!", "", r"<S:démissionné de|démissionné de chez|quitté mon (?:travail|poste|emploi)"
     r" chez/démissionné de><V>"),
    ("former/employer!", "*", r"<S:démissionné|perdu mon (?:travail|emploi|poste)|quitté mon (?:travail|poste|emploi)"
     r"|été (?:licenciée?|virée?)/démissionné>"),
    ("former/studies!", "", r"je n'étudie plus (?:le |la |l'|les )?<V>"),
    ("former/diet", "", r"je ne suis plus (?P<v><diet>)"),
    ("former/partner!", "", r"<S:rompu avec|plus avec|séparée? de/rompu avec><V>|(?P<v>(?-i:[A-Z])\w+) et moi,? (?:on"
     r" s'est|nous nous sommes|avons) (?:séparée?s|rompu)"),
    ("former/partner!", "*", r"(?:on s'est|nous nous sommes) séparée?s"),
    ("former/pet/{t}!", "*", r"(?:mon|ma|notre) (?P<t><pet>)(?: (?-i:[A-Z])\w+)? (?:est morte?|est décédée?|nous a"
     r" quittés|s'est enfuie?)"),
    ("former/car!", "*", r"<S:vendu/vendu>(?:ma|notre|la) voiture"),
    ("former/{plan}!", "*", r"<the>(?P<t><event>) (?:est|a été) annulée?"),
    ("residence", "", r"<S:habite|habitons|vis|vivons/habite|vit>(?:à|en|au|aux) <V>"),
    ("residence!", "", r"<S:déménagé|déménage|emménagé|installée?|installés|me suis installée?/déménagé|emménagé"
     r"|installée?>(?:à|en|au|aux) <V>"),
    ("@residence", "", r"(?:je suis|nous sommes|on est) (?:\w+ )?(?:à|en|au) <V>"),
    ("hometown", "", r"<S:viens|suis née?|née?|suis originaire|originaire|grandi/vient|née?|originaire|grandi>(?:de "
     r"|d'|à )<V>"),
    ("job", "", r"<S:travaille/travaille>(?:comme|en tant que) <V>"),
    ("job", "", r"(?:<S:devenue?/est|devenue?>|je suis (?:maintenant |désormais |devenue? )?)(?P<v><job>)(?! de )"),
    ("job!", "", r"<S:trouvé|décroché|commencé>un (?:nouveau )?(?:travail|poste|emploi|boulot) (?:de|comme) <V>"),
    ("employer", "", r"<S:travaille/travaille>(?:chez|pour) <V>"),
    ("employer!", "", r"<S:commencé|rejoint|rejoins|passée?|embauchée?/commencé|rejoint>(?:chez |par"
     r" )?(?-i:(?=[A-Z]))<V>"),
    ("studies", "", r"<S:étudie|fais des études de/étudie>(?:le |la |l'|les )?<V>"),
    ("diet", "", r"(?:<S:devenue?/est|devenue?>|je suis (?:maintenant |désormais |devenue? )?)(?P<v><diet>)"),
    ("diet!", "omnivore", r"<S:remange|mange/mange>(?:de nouveau |à nouveau )?de la viande"),
    ("diet!", "végétarien", r"je ne mange (?:plus|pas) de viande"),
    ("eats/{t}", "no", r"je ne mange (?:plus|pas|jamais) (?:de |d')<T>"),
    ("name", "", r"(?:je m'appelle|mon nom est|mon prénom est) <V>|(?P<who>ma <kin>|mon <kin>"
     r"|notre <kin>) s'appelle <V>"),
    ("nickname", "", r"(?:appelle|appelez)-moi <V>|on m'appelle <V>"),
    ("age", "", r"<S:ai|eu/a|eu>(?P<v>\d{1,3}) ans"),
    ("age", "", r"j'ai (?:maintenant |eu )?(?P<v>\d{1,3}) ans"),
    ("birthday", "", r"mon anniversaire est (?:en fait )?(?:le )?<V>"),
    ("birthday", "", r"je suis née? le <V>"),
    ("marital_status", "", r"(?:je suis|nous sommes|on est|<S:suis/est>)(?: ?(?:maintenant|désormais))?"
     r" ?(?P<v><married>)"),
    ("marital_status!", "mariée", r"(?:nous nous sommes|on s'est|je me suis) mariée?s?"),
    ("partner", "", r"<S:sors|suis en couple|suis/sort>avec (?P<v>(?-i:[A-Z])\w+)|je suis (?:mariée?|fiancée?|en"
     r" couple) (?:à|avec) (?P<v>(?-i:[A-Z])\w+)"),
    ("phone", "", r"mon (?:nouveau )?numéro(?: de téléphone)? est (?:le )?(?P<v>\+?\d[\d /().-]{4,20}\d)"),
    ("email", "", r"mon (?:nouvelle? )?(?:adresse )?e?-?mail est (?P<v>[\w.+-]+@[\w-]+\.[\w.-]*\w)"),
    ("address", "", r"ma (?:nouvelle )?adresse est (?:maintenant )?(?:le )?<V>"),
    ("language/{t}", "yes", r"<S:parle/parle>(?:couramment |bien |un peu )?(?:l'|le )?(?P<t><tongue>)"),
    ("answers/language", "", r"(?:réponds|répondez|écris|parle)(?:-moi)?(?: toujours| désormais)? en (?P<v><tongue>)"),
    ("favourite/{t}", "", r"(?:mon|ma) (?P<t>\w+) préférée? (?:est|c'est)(?: maintenant| désormais)? <V>"),
    ("allergy/{t}", "no", r"je ne suis (?:plus|pas) allergique (?:à la |à l'|au |aux |à )<T>"),
    ("allergy/{t}", "yes", r"(?:<S:suis|devenue?/est|devenue?>|je suis )(?:\w+ )?allergique (?:à la |à l'|au |aux |à"
     r" )<T>"),
    ("likes/{t}", "no", r"(?:je n'aime|je n'adore) (?:plus|pas)(?: du tout| vraiment)? (?:le |la |l'|les )?<T>|je"
     r" (?:déteste|hais) (?:le |la |l'|les )?<T>"),
    ("likes/{t}", "yes", r"<S:aime|adore/aime|adore>(?:bien |beaucoup |vraiment )?(?:le |la |l'|les )<T>"),
    ("smoking", "no", r"<S:arrêté/arrêté>(?:de fumer|la cigarette)|je ne fume (?:plus|pas)"),
    ("smoking", "yes", r"(?:je fume|<S:recommencé à fumer|me suis remise? à fumer/fume>)(?= beaucoup| encore| depuis|"
     r" de nouveau| \d|[.,! ]|$)"),
    ("drinking", "no", r"je ne bois (?:plus|pas)(?: d'alcool)?|<S:arrêté>(?:de boire|l'alcool)"),
    ("drinking", "yes", r"je bois (?:à nouveau |de nouveau )?(?:de l'alcool|du vin|de la bière)"),
    ("pet/{t}", "yes", r"(?:j'ai|nous avons|on a|<S:adopté|acheté/a|adopté>)(?: adopté| acheté)? ?(?:un|une) (?:\w+"
     r" )?(?P<t><pet>)"),
    ("petname/{t}", "", r"(?:mon|ma|notre) (?P<t><pet>) s'appelle (?P<v>\w+)"),
    ("owns/{t}", "no", r"<S:vendu|donné/vendu>(?:mon|ma|notre|la|le) (?P<t><thing>)"),
    ("owns/{t}", "yes", r"(?:j'ai|nous avons|on a|<S:acheté/a|acheté>)(?: acheté)? ?(?:un|une) (?:\w+"
     r" )?(?P<t><thing>)"),
    ("{plan}~", "", r"<the>(?P<t><event>) (?:est|a été|était) (?:<moved>)(?: du [^,]{1,20}?)? (?:à |au |jusqu'à )(?:le"
     r" )?(?P<v><dates>)"),
    ("{plan}~", "", r"(?:avons|ai|a|ont) (?:<moved>) <the>(?P<t><event>)(?: du [^,]{1,20}?)? (?:à |au |en"
     r" )(?P<v><dates>)"),
    ("{plan}", "", r"<the>(?P<t><event>) (?:est|aura lieu|commence|sera)(?: maintenant| finalement| prévue?)? (?:le "
     r"|en |à |au |pour )?(?P<v><dates>)"),
    ("+{plan}", "", r"(?:j'ai|nous avons|on a) (?:un |une )?(?P<t><event>) (?:le |en |à )?(?P<v><dates>)"),
)  # fmt: skip
_ENDS = (
    r"et|mais|car|parce|depuis|avec|pour|maintenant|désormais|en|à|au|aux|dans|sur|jusqu'\w*|après|avant|quand|où|qui"
    r"|que"
    r"|aussi|plus|pas|comme|très|beaucoup|surtout|le mois|la semaine|l'année|l'an|cette|ce|chez|par|il y a|du tout|ou"
)
FRENCH = Grammar(
    rules=table(_ROWS, _SUBJECT, _ENDS, _WORDS),
    unreal=words(r"peut-être|probablement|sans doute|presque|\w+rais|\w+rait|\w+rions|pourrais|voudrais|j'aimerais"
    r"|envisage"
                 r"|j'hésite|je pense à|je rêve|je veux|j'espère|faillis?|failli|soi-disant|je rigole|je plaisante"),
    doubtful=words(r"si|s'il|s'ils|imagine|imagine que|imaginons|supposons|à supposer|en théorie|au cas où|dans (?:mon"
    r"|le|la|l'|cette|ce) ?"
                   r"(?:histoire|roman|jeu|livre|film|rêve)|est-ce que"),
    reported=words(r"(?:il|elle|on|ils|elles|(?:mon|ma|mes) \w+|(?-i:[A-ZÉ])[a-zà-ÿ]+|quelqu'un) (?:dit|disait|a dit"
     r"|pense|croit|raconte"
                   r"|prétend|affirme|m'a dit|écrit|a écrit|disent|pensent)|selon|il paraît|d'après|paraît-il"),
    subordinate=words(r"(?:où|qui|quand|avant que|pendant que|lorsque|comment|pourquoi|comme si|dont|dès que|la \w+"
    r" que) *$"),
    temporary=for_a_while(r"cette (?:semaine|année)|ce (?:week-end|mois|mois-ci|soir|matin)|cet (?:été|hiver"
        r"|automne)|pour"
    r" (?:le week-end"
                    r"|l'été|la semaine|l'instant|le moment|quelques \w+|une semaine|un mois|deux \w+|trois \w+)|en ce"
                    r" moment"
                    r"|temporairement|provisoirement|aujourd'hui|jusqu'(?:à|au|en) \w+|en vacances|de passage|pendant"
                    r"|en déplacement|en visite|ces jours-ci"),
    corrects=words(r"^(?:non|pardon|désolée?|oups|correction|je voulais dire|en fait|enfin|je me suis trompée?"
    r"|erreur)"),
    meant=re.compile(r"(?:^|\b)(?:(?:non|pardon|désolée?|oups|correction)[,:;.!— –-]+)*(?:je voulais dire|je veux dire)"
                     r" (?:le |à |en )?(?P<v>[^,.;!?]{1,40}?)(?:,? (?:pas|et non|et pas) [^.;!?]{1,40})?[ .!]*$",
                     re.IGNORECASE),
    also=words(r"aussi|également|en plus|à côté|bénévole|à temps partiel|en parallèle"),
    no_value=words(r"^(?:ça|cela|ce|cette|ces|tu|toi|vous|lui|leur|comment|quand|que|qu'\w+|ton|ta|tes|votre|vos|mon"
    r"|ma|mes|rien"
                   r"|tout|un|une|cet|il|elle|idée|fait|façon|train|retard|avance|couple|forme|colère|vacances"
                   r"|voyage)"),
    article=re.compile(r"^(?:(?:le|la|les|un|une|du|des|de la) |l'|d')", re.IGNORECASE),
    next_clause=re.compile(r"\s*[,;:—–]\s+|\s[-–—]\s|\s+(?:et|mais|car|donc)\s+(?=(?:je|j'|nous|on|mon|ma|notre"
    r"|maintenant|le|la|l')"
                           r"(?:\b|(?<=')))", re.IGNORECASE),
    asks=words(r"^(?:(?:s'il te plaît|s'il vous plaît|peux-tu|pouvez-vous|et|merci de)[, ]+)*(?:écris(?!(?:-moi)? en )"
    r"|écrivez|traduis|traduisez|dis|réserve|réservez|rappelle|rappelez|commande|annule|demande|corrige|rédige|trouve"
    r"|cherche)"),
    contrasts=(
        Contrast(re.compile(r"(?<!\w)je n'(?P<verb>\w+) pas (?P<prep>à|en|au|chez|comme|pour) [^,;]{1,40}?,? mais"
        r" (?=(?:à|en|au|chez|comme|pour) )", re.IGNORECASE), r"j'\g<verb> "),
        Contrast(re.compile(r"(?<!\w)(?P<subject>je|elle|il|on|nous) ne (?P<verb>\w+) pas (?P<prep>à|en|au|chez"
            r"|comme|pour)"
        r" [^,;]{1,40}?,? mais (?=(?:à|en|au|chez|comme|pour) )", re.IGNORECASE), r"\g<subject> \g<verb> "),
        Contrast(re.compile(r"(?<!\w)n'est pas (?P<prep>le|à|en|au) [^,;]{1,40}?,? mais (?=(?P=prep) )", re.IGNORECASE),
        "est "),
    ),
)  # fmt: skip
