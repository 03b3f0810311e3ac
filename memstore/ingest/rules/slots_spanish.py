"""The slots of Spanish: the subject stands in the verb, so what denies it or asks stands right before."""

from __future__ import annotations

import re

from memstore.ingest.rules.slotbook import Contrast, Grammar, Subject, for_a_while, table, words

_WORDS = {
    "kin": r"madre|mamá|padre|papá|padres|hermana|hermano|hijo|hija|mujer|esposa|marido|esposo|novia|novio|pareja|tía"
    r"|tío"
    r"|primo|prima|abuela|abuelo|sobrina|sobrino|amigo|amiga|jefe|jefa|compañer[oa]|vecin[oa]",
    "diet": r"vegan[oa]|vegetarian[oa]|pescetarian[oa]|flexitarian[oa]|omnívor[oa]",
    "married": r"solter[oa]|casad[oa]s?|divorciad[oa]s?|prometid[oa]s?|viud[oa]|separad[oa]s?",
    "job": r"enfermer[oa]|profesora?|maestr[oa]|médic[oa]|doctora?|ingenier[oa]|desarrolladora?|programadora?"
    r"|abogad[oa]"
    r"|camarer[oa]|cociner[oa]|panader[oa]|arquitect[oa]|periodista|estudiante|peluquer[oa]|juez|jueza|contable"
    r"|diseñadora?|músic[oa]|vendedora?|farmacéutic[oa]|traductora?|fotógraf[oa]|piloto|cartero|librer[oa]"
    r"|dentista|psicólog[oa]|carpinter[oa]|jardiner[oa]|investigadora?|matrona|conductora?|socorrista|actor|actriz",
    "pet": r"perr[oa]|gat[oa]|conejo|hámster|caballo|loro|tortuga|periquito|pájaro|cachorro",
    "thing": r"bici(?:cleta)?|moto|casa|piso|apartamento|guitarra|piano|violín|cámara|barco|autocaravana|huerto",
    "tongue": r"español|inglés|alemán|francés|italiano|portugués|neerlandés|polaco|ruso|chino|japonés|árabe|turco"
    r"|sueco|danés"
    r"|griego|checo|ucraniano|catalán|euskera|gallego",
    "month": r"enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre",
    "date": r"(?:lunes|martes|miércoles|jueves|viernes|sábado|domingo)(?: que viene| por la \w+| próximo)?|\d{1,2} de"
    r" (?:<month>)"
    r"|(?:<month>)|mañana|pasado mañana|(?:la semana|el mes|el año) que viene|(?:las? )?\d{1,2}(?::\d\d)?(?= (?:de la"
    r"|horas)|$|[.,!])"
    r"|mediodía|(?:la primavera|el verano|el otoño|el invierno)",
    "dates": r"<date>(?:,? (?:a |el |en |de )?(?:<date>|20\d\d)){0,3}",
    "event": r"examen|reunión|cita(?: (?:con|en) (?:el |la )?\w+)?|boda|vuelo|viaje|entrevista|concierto|operación"
    r"|fiesta|clase"
    r"|carrera|presentación|mudanza|conferencia|partido|torneo|visita|tren|curso|defensa|cena",
    "the": r"(?:el|la|mi|nuestr[oa])",
    "moved": r"aplazad[oa]|cambiad[oa]|movid[oa]|pospuest[oa]|adelantad[oa]|retrasad[oa]|pasad[oa]",
}
_SUBJECT = Subject(
    first=r"(?<!no )(?<!nunca )(?<!que )(?:(?:yo|nosotros|nosotras) )?",
    inverted="",
    third=r"(?:mis?|nuestr[oa]s?) (?:(?:mejor|nuevo|nueva) )?(?:<kin>)(?: (?:mayor|menor"
    r"|pequeñ[oa]))?(?: (?-i:[A-Z])\w+)?"
    r"|(?!(?:Él|Ella|Ellos|Yo|Tú|El|La|Los|Las|Un|Una|Mi|Mis|Nuestro|Nuestra|Que|No|Ya|Ahora|Aquí"
    r"|Hoy)\b)(?-i:[A-ZÁÉÍÓÚ][a-zà-ÿ]+)",
    adverbs=r"(?: ?(?:ahora|también|ya|actualmente|todavía|siempre|mucho|por fin|acabo de|acaba de|he|ha|hemos|me he"
    r"|se ha"
    r"|nos hemos|me|se|nos|ahora mismo)(?!\w))* ?",
)
_ROWS = (
    ("former/residence", "", r"ya no (?:vivo|vivimos|resido) en <V>"),
    ("former/employer!", "", r"ya no trabajo (?:en|para) <V>"),
    ("former/job!", "", r"ya no (?:trabajo (?:de|como)|soy) (?P<v><job>)"),
    ("former/employer!", "", r"(?:dejé|he dejado|perdí) (?:mi |el )?(?:trabajo|empleo|puesto) en <V>"),
    ("former/employer!", "*", r"(?:dejé|he dejado|perdí|he perdido) (?:mi |el )(?:trabajo|empleo|puesto)|me (?:han |ha"
     r" )?(?:despedido|despidieron)|renuncié"),
    ("former/studies!", "", r"ya no estudio <V>"),
    ("former/diet", "", r"ya no soy (?P<v><diet>)"),
    ("former/partner!", "", r"(?:he roto|rompí|terminé|he terminado|ya no (?:estoy|salgo)) con <V>"
     r"|(?P<v>(?-i:[A-Z])\w+) y yo (?:hemos roto|rompimos|lo hemos dejado|nos separamos)"),
    ("former/partner!", "*", r"(?:nos separamos|nos hemos separado|lo hemos dejado)"),
    ("former/pet/{t}!", "*", r"(?:mi|nuestr[oa]) (?P<t><pet>)(?: (?-i:[A-Z])\w+)? (?:murió|ha muerto|se escapó|se"
     r" murió|falleció)"),
    ("former/car!", "*", r"(?:vendí|he vendido|hemos vendido) (?:mi|el|nuestro) coche"),
    ("former/{plan}!", "*", r"<the> (?P<t><event>) (?:está|fue|ha sido|se ha) cancelad[oa]"),
    ("residence", "", r"<S:vivo|vivimos|resido|viviendo/vive|viviendo>en <V>"),
    ("residence!", "", r"<S:mudé|mudado|mudamos|trasladé|trasladado|instalé|instalado/mudó|mudado|trasladó"
     r"|trasladado>(?:a|en) <V>"),
    ("@residence", "", r"(?<!no )(?:estoy|estamos) (?:\w+ )?en <V>"),
    ("hometown", "", r"<S:soy|vengo|nací|crecí|procedo/es|viene|nació|creció>(?:de|en) (?-i:(?=[A-ZÁÉÍÓÚ]))<V>"),
    ("job", "", r"<S:trabajo|trabajando/trabaja>(?:como|de) <V>"),
    ("job", "", r"<S:soy/es>(?:una? )?(?P<v><job>)(?! de )"),
    ("job!", "", r"(?:encontré|he encontrado|empecé|conseguí|he conseguido) (?:un )?(?:nuevo )?(?:trabajo|empleo"
     r"|puesto) (?:de|como) <V>"),
    ("employer", "", r"<S:trabajo|trabajando/trabaja>(?:en|para) <V>"),
    ("employer!", "", r"(?:empecé|he empezado|entré|he entrado|me fichó)(?: a trabajar)? (?:en )<V>"),
    ("studies", "", r"<S:estudio|estudiando/estudia>(?!en|para|mucho|con|los|cada)<V>"),
    ("diet", "", r"<S:soy|hice|hecho|vuelto|volví/es|hizo|hecho>(?:una? )?(?P<v><diet>)"),
    ("diet!", "omnívoro", r"(?:vuelvo a comer|como otra vez|he vuelto a comer) carne"),
    ("diet!", "vegetariano", r"(?:ya no|no) como carne|(?:dejé|he dejado) de comer carne"),
    ("eats/{t}", "no", r"(?:ya no|no|nunca) como <T>|(?:dejé|he dejado) de comer <T>"),
    ("name", "", r"(?<!no )(?:me llamo|mi nombre es) <V>|(?P<who>mi <kin>|nuestr[oa] <kin>) se llama <V>"),
    ("nickname", "", r"(?:llámame|llamadme|todos me llaman|mis amigos me llaman) <V>"),
    ("age", "", r"<S:tengo|cumplí|cumplido|cumplo/tiene|cumplió>(?P<v>\d{1,3})(?: años)(?! de)"),
    ("birthday", "", r"mi cumpleaños es (?:en realidad )?(?:el )?<V>"),
    ("birthday", "", r"nací el <V>"),
    ("marital_status", "", r"<S:estoy|estamos|soy/está|es>(?:\w+ )?(?P<v><married>)"),
    ("marital_status!", "casada", r"(?:nos casamos|nos hemos casado|me casé|me he casado)"),
    ("partner", "", r"<S:salgo|saliendo|casada|casado|estoy/sale|saliendo>con (?-i:(?=[A-Z]))(?P<v>\w+)"),
    ("phone", "", r"mi (?:nuevo )?(?:número|teléfono|móvil)(?: de (?:teléfono|móvil))? es (?:ahora )?(?:el"
     r" )?(?P<v>\+?\d[\d /()-]{4,20}\d)"),
    ("email", "", r"mi (?:nuevo )?(?:correo|e-?mail|email)(?: electrónico)? es (?P<v>[\w.+-]+@[\w-]+\.[\w.-]*\w)"),
    ("address", "", r"mi (?:nueva )?dirección es (?:ahora )?<V>"),
    ("language/{t}", "yes", r"<S:hablo/habla>(?:bien |un poco de |algo de )?(?P<t><tongue>)"),
    ("answers/language", "", r"(?:responde|respóndeme|contesta|contéstame|escríbeme|háblame)(?: siempre| por favor)?"
     r" en (?P<v><tongue>)"),
    ("favourite/{t}", "", r"mi (?P<t>\w+) (?:favorit[oa]|preferid[oa])(?: ahora)? es(?: ahora)? <V>"),
    ("allergy/{t}", "no", r"(?:ya no|no) soy alérgic[oa] (?:a la |a las |a los |al |a )<T>"),
    ("allergy/{t}", "yes", r"<S:soy|vuelto/es>(?:muy )?alérgic[oa] (?:a la |a las |a los |al |a )<T>"),
    ("likes/{t}", "no", r"(?:ya no|no) me (?:gustan?|encantan?) (?:el |la |los |las )?<T>|odio (?:el |la |los |las"
     r" )?<T>"),
    ("likes/{t}", "yes", r"(?<!no )(?:también )?me (?:gustan?|encantan?) (?:mucho )?(?:el |la |los |las )?<T>"),
    ("smoking", "no", r"(?:ya no|no|nunca) fumo|(?:dejé|he dejado) (?:de fumar|el tabaco)"),
    ("smoking", "yes", r"<S:fumo|vuelto a fumar|vuelvo a fumar|empezado a fumar/fuma>(?=otra|mucho|un|desde|\d|[.,!]"
     r"|$)"),
    ("drinking", "no", r"(?:ya no|no|nunca) bebo(?: alcohol| nada de alcohol)?(?=[.,!]|$| desde)|(?:dejé|he dejado)"
     r" (?:de beber|el alcohol)"),
    ("drinking", "yes", r"<S:bebo/bebe>(?:otra vez )?(?:alcohol|vino|cerveza)"),
    ("pet/{t}", "yes", r"<S:tengo|tenemos|adopté|adoptado|adoptamos/tiene|adoptó>(?:una? )(?:\w+ )?(?P<t><pet>)"),
    ("petname/{t}", "", r"(?:mi|nuestr[oa]) (?P<t><pet>) se llama (?P<v>\w+)"),
    ("car", "", r"(?:mi coche (?:nuevo )?es|conduzco) una? <V>"),
    ("owns/{t}", "no", r"(?:vendí|he vendido|hemos vendido|regalé) (?:mi|el|la|nuestr[oa]) (?P<t><thing>)"),
    ("owns/{t}", "yes", r"<S:tengo|tenemos|compré|comprado/tiene|compró>(?:una? )(?:\w+ )?(?P<t><thing>)"),
    ("{plan}~", "", r"<the> (?P<t><event>) (?:ha sido|fue|está|se ha) (?:<moved>)(?: del [^,]{1,20}?)? (?:al|a|para"
     r"|hasta) (?:el )?(?P<v><dates>)"),
    ("{plan}~", "", r"(?:hemos|he|han|ha) (?:<moved>) <the> (?P<t><event>)(?: del [^,]{1,20}?)? (?:al|a|para|hasta)"
     r" (?:el )?(?P<v><dates>)"),
    ("{plan}~", "", r"<the> (?P<t><event>) se (?:ha )?(?:pasado|pasa|aplaza|mueve|movió|cambió|pasó) (?:al|a|para)"
     r" (?:el )?(?P<v><dates>)"),
    ("{plan}", "", r"<the> (?P<t><event>) (?:es|será|empieza|sale)(?: ahora| finalmente)? (?:el |en |a"
     r" )?(?P<v><dates>)"),
    ("+{plan}", "", r"(?:tengo|tenemos) (?:una? )(?P<t><event>) (?:el |en |a )?(?P<v><dates>)"),
)  # fmt: skip
_ENDS = (
    r"y|e|pero|porque|desde|con|para|ahora|en|a|al|hasta|después|antes|cuando|donde|que|también|ya|como|muy|mucho|sobre"
    r"|el mes|la semana|el año|este|esta|por|hace|nada|o|sin"
)
SPANISH = Grammar(
    rules=table(_ROWS, _SUBJECT, _ENDS, _WORDS),
    unreal=words(r"quizás?|tal vez|probablemente|posiblemente|a lo mejor|casi|\w+ría|\w+ríamos|quiero|quisiera|espero"
    r"|pienso"
                 r"|me gustaría|estoy pensando|sueño con|es broma|supuestamente|ojalá"),
    doubtful=words(r"si|imagina|imagínate|imaginemos|supongamos|suponiendo|en teoría|en caso de|en (?:mi|la|el|esta"
    r"|este) (?:historia"
                   r"|novela|juego|libro|película|sueño)"),
    reported=words(r"(?:él|ella|ellos|mis? \w+|(?!Yo)(?-i:[A-ZÁÉÍÓÚ])[a-zà-ÿ]+|alguien) (?:dice|dijo|dicen|cree|piensa"
     r"|cuenta|afirma"
                   r"|me dijo|escribió|escribe|ha dicho)|según|dicen que|parece ser"),
    subordinate=words(r"(?:donde|quien|cuando|antes de que|mientras|cómo|por qué|como si|no|nunca|ni|tampoco) *$"),
    temporary=for_a_while(r"esta (?:semana|noche)|este (?:fin de semana|mes|verano|invierno|otoño)|por (?:un|una"
        r"|dos|tres"
        r"|cuatro|\d+) (?:días?|semanas?|mes(?:es)?)|por (?:unos días|el"
    r" momento|ahora"
                    r"|una semana|un mes|unas semanas)|durante|temporalmente|hoy|hasta (?:el |la )?\w+|de vacaciones"
                    r"|de visita"
                    r"|ahora mismo|de paso|en este momento|de momento|solo (?:unos|por)|estos días"),
    corrects=words(r"^(?:no,|perdón|perdona|lo siento|corrección|quería decir|quise decir|en realidad|me equivoqué|uy"
    r"|ay)"),
    meant=re.compile(r"(?:^|\b)(?:(?:no|perdón|perdona|lo siento|corrección)[,:;.!— –-]+)*(?:quería decir|quise decir)"
                     r" (?:el |a |en )?(?P<v>[^,.;!?]{1,40}?)(?:,? (?:no|y no) [^.;!?]{1,40})?[.!]*$", re.IGNORECASE),
    also=words(r"también|además|voluntari[oa]|a tiempo parcial|aparte"),
    no_value=words(r"^(?:eso|esto|esta|este|ese|esa|tú|ti|usted|le|lo|cómo|cuando|que|tu|tus|su|sus|mi|mis|nada|todo"
    r"|una?|algo|aquí"
                   r"|ahí|casa|idea|hecho|forma|serio|paz|pie)"),
    article=words(r"^(?:el|la|los|las|una?|unos|unas)(?= )"),
    next_clause=re.compile(r"\s*[,;:—–]\s+|\s[-–—]\s|\s+(?:y|pero|porque|así que)\s+(?=(?:yo(?! (?:hemos|rompimos|lo"
    r" hemos|nos))|mi|ahora|vivo|trabajo|tengo|estoy|soy|me|"
                           r"el|la|también)\b)", re.IGNORECASE),
    asks=words(r"^(?:(?:por favor|puedes|podrías|y|ahora)[, ]+)*(?:escribe(?!(?:me)? en )|traduce|di|dile|reserva"
        r"|resérvame"
    r"|recuérdame|pide|cancela|pregunta|corrige|redacta|busca)"),
    contrasts=(
        Contrast(re.compile(r"(?<!\w)no (?P<verb>\w+) (?P<prep>en|de|a|con|como|para|el) [^,;]{1,40}?,? sino"
        r" (?=(?:en|de|a|con|como|para|el) )", re.IGNORECASE), r"\g<verb> "),
    ),
)  # fmt: skip
