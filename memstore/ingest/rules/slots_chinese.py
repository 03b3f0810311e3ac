"""The slots of Chinese, the surest only: no word has an end that shows, so each row says where its value is over."""

from __future__ import annotations

import re

from memstore.ingest.rules.slotbook import Contrast, Grammar, SlotRule

_KIN = (
    r"妈妈|母亲|爸爸|父亲|父母|姐姐|妹妹|哥哥|弟弟|老婆|妻子|太太|老公|丈夫|先生|女儿|儿子|男朋友|女朋友|奶奶|爷爷|外婆|外公|阿姨|叔叔"
    r"|朋友|同事|老板|室友|邻居"
)
_JOB = (
    r"护士|医生|老师|教师|教练|工程师|程序员|设计师|律师|会计师?|厨师|司机|记者|作家|学生|大学生|研究生|演员|翻译|教授|科学家|建筑师|摄影师"
    r"|销售|经理|警察|消防员|农民|画家|歌手|药剂师|牙医|兽医|咨询师|自由职业者|公务员|店员|服务员|理发师|导游|编辑|面包师|飞行员|研究员|法官"
)
_FIRM = (
    r"[^，,。不]{0,10}?(?:公司|银行|医院|学校|大学|中学|小学|幼儿园|集团|工厂|餐厅|咖啡馆|书店|律所|事务所|出版社|报社"
    r"|研究所|博物馆)|[A-Za-z][\w .&-]{1,20}?"
)
_OFTEN = r"现在|目前|也|已经|还|一直|刚刚?|就|仍然|最近|终于|其实|今年|去年|上个?[月周]|又|都|从今天起"
_PETS = r"猫|狗|兔子|仓鼠|鹦鹉|乌龟|金鱼|马|豚鼠"
_DAY = (
    r"(?:下|这|本|上)?个?(?:周|星期|礼拜)[一二三四五六日天](?:[上下]午|晚上)?|\d{1,2}月\d{1,2}[日号]|\d{1,2}[日号]|明天|后天|下周|下个?月|\d{1,2}月"
    r"|[上下]午[一二三四五六七八九十\d]+点"
)
_EVENT = r"考试|会议|面试|航班|牙医预约|预约|手术|婚礼|聚会|比赛|演讲|音乐会|搬家|旅行"
_WORDS = {
    # Who speaks, or one of theirs; what stands between the subject and the verb.
    "S": rf"(?:我们?(?:家)?的?(?P<who>{_KIN})|我们?(?!的|家|{_KIN}))(?:{_OFTEN})*",
    "I": rf"我们?(?!的|家|{_KIN})(?:{_OFTEN})*",
    "V": r"(?P<v>[^\s，,。；;！!？?：:、…“”\"不没到]{1,12}?)",
    "T": r"(?P<t>[^\s，,。；;！!？?：:…“”\"不没]{1,10}?)",
    "end": r"(?:了|啦|呢|啊|吧)?(?=$|[\s，,。；;！!])",
    "kin": _KIN, "job": rf"[^，,。的不没]{{0,4}}?(?:{_JOB})", "firm": _FIRM, "pet": _PETS, "day": _DAY, "event": _EVENT,
    "one": r"(?:一名|一个|一位|一家|个|名|位)?",
}  # fmt: skip
_ROWS = (
    ("former/residence", "", r"<S>不(?:再)?住在<V><end>"),
    ("former/residence!", "", r"<S>(?:离开|搬离|搬出)了?<V><end>"),
    ("former/employer!", "", r"<S>不(?:再)?在<V>(?:工作|上班)<end>"),
    ("former/employer!", "", r"<S>从<V>(?:辞职|离职)<end>"),
    ("former/employer!", "*", r"<S>(?:辞职|离职|失业|被裁|被解雇|辞了工作)<end>"),
    ("former/job!", "", r"<S>不(?:再)?(?:是|当|做)(?P<v><job>)<end>"),
    ("former/diet", "", r"<S>不(?:再)?是(?P<v>素食者|素食主义者)<end>"),
    ("former/diet", "素食者", r"<S>不(?:再)?吃素<end>"),
    ("former/partner!", "", r"我(?:和|跟|与)<V>分手<end>"),
    ("former/partner!", "*", r"<I>分手<end>"),
    ("former/pet/{t}!", "*", r"我们?(?:家)?的?小?(?P<t><pet>)(?:死|去世|走丢|不在)<end>"),
    ("residence!", "", r"<S>[^，,。不没想]{0,6}?搬(?:家)?(?:到|去|回|来)了?<V><end>"),
    ("residence", "", r"<S>住在<V>(?:<end>|(?=到))"),
    ("temporary/residence", "", r"<S>[^，,。不没想]{0,8}?在<V>(?:出差|旅游|旅行|度假|借住|待)"),
    ("hometown", "", r"<S>(?:是)?来自<V><end>|<S>是在<V>(?:出生|长大)的|<S>在<V>(?:出生|长大)"),
    ("job!", "", r"<S>(?:当上?了|做了|成了|成为了?)<one>(?P<v><job>)<end>"),
    ("job", "", r"<S>(?:是|当|做)<one>(?P<v><job>)<end>"),
    ("job!", "退休", r"<S>退休<end>"),
    ("employer!", "", r"<S>(?:跳槽到|加入|入职)了?<V><end>"),
    ("employer", "", r"<S>在<one>(?P<v><firm>)(?:工作|上班|任职|教书)"),
    ("employer", "", r"<S>为<V>工作"),
    ("diet!", "杂食", r"<S>(?:开始)?吃肉了"),
    ("diet", "素食者", r"<S>(?:是<one>(?:素食者|素食主义者)|(?:开始)?吃素|成了素食者)<end>"),
    ("eats/{t}", "no", r"<S>(?:从)?不(?:再|能)?吃<T><end>"),
    ("name", "", r"<S>(?:名)?叫<V><end>|我(?:的)?名字(?:是|叫)<V><end>"),
    ("name!", "", r"<S>改名(?:叫|为|成)了?<V><end>"),
    ("nickname", "", r"(?:^|请|你可以|大家都|以后)叫我<V>(?:就行|就好|吧)?<end>"),
    ("age", "", r"<S>(?P<v>\d{1,3})岁<end>"),
    ("birthday", "", r"我(?:的)?生日(?:其实)?是(?P<v>\d{1,2}月\d{1,2}[日号])"),
    ("marital_status!", "已婚", r"<S>(?:和[^，,。]{1,6}|昨天|上周.?)?结婚了"),
    ("marital_status", "已婚", r"<S>已婚"),
    ("marital_status!", "离婚", r"<S>(?:和[^，,。]{1,6})?离婚了"),
    ("marital_status!", "订婚", r"<S>(?:和[^，,。]{1,6})?订婚了"),
    ("marital_status", "单身", r"<S>(?:是)?单身"),
    ("partner", "", r"我(?:的)?(?:男朋友|女朋友|老公|老婆|丈夫|妻子)(?:叫|名叫)<V><end>"),
    ("phone", "", r"我的新?(?:电话|手机)(?:号码?)?(?:改成|是)(?P<v>\+?\d[\d -]{4,20}\d)"),
    ("answers/language", "", r"(?:请|以后|今后|总是)*用(?P<v>中文|英文|英语|德语|法语|西班牙语|日语)(?:回答|回复)"),
    ("allergy/{t}", "no", r"<S>不(?:再)?对<T>过敏|<S>对<T>(?:已经)?不(?:再)?过敏"),
    ("allergy/{t}", "yes", r"<S>对<T>(?:严重|非常)?过敏"),
    ("likes/{t}", "no", r"<S>(?:不(?:再|太)?喜欢|讨厌)(?:吃|喝)?<T><end>"),
    ("likes/{t}", "yes", r"<S>(?:很|非常|最|特别|挺|真的)?(?:喜欢|爱|热爱)(?:上了)?(?:吃|喝)?<T><end>"),
    ("smoking", "no", r"<S>(?:不(?:再)?(?:抽烟|吸烟)|戒烟)<end>"),
    ("smoking", "yes", r"<S>(?:开始)?(?:抽烟|吸烟)<end>"),
    ("drinking", "no", r"<S>(?:不(?:再)?喝酒|戒酒)<end>"),
    ("drinking", "yes", r"<S>(?:开始)?喝酒<end>"),
    ("petname/{t}", "", r"我们?(?:家)?的?小?(?P<t><pet>)叫<V><end>"),
    ("pet/{t}", "yes", r"<S>(?:有|养|领养|买)了?[一两三\d]?(?:只|条|个|匹)?小?(?P<t><pet>)<end>"),
    ("{plan}~", "", r"(?:我的?)?(?P<t><event>)(?:已经|被|又)*(?:改到|推迟到|提前到|改成|改在)了?(?P<v><day>)"),
    ("{plan}", "", r"(?:我的?)(?P<t><event>)(?:是|在|定在)(?P<v><day>)"),
)  # fmt: skip
_MACRO = re.compile(r"<(\w+)>")
_GROUP = re.compile(r"\(\?P<(who|v|t)>")


def _table() -> tuple[SlotRule, ...]:
    def spelled_out(pattern: str) -> str:
        return _MACRO.sub(lambda word: f"(?:{spelled_out(_WORDS[word[1]])})" if word[1] in _WORDS else word[0], pattern)

    def compiled(pattern: str) -> re.Pattern[str]:
        number = iter(range(99))
        return re.compile(_GROUP.sub(lambda group: f"(?P<{group[1]}{next(number)}>", spelled_out(pattern)))

    return tuple(
        SlotRule(attribute.strip("!~"), value, compiled(pattern), attribute.endswith(("!", "~")), attribute[-1] == "~")
        for attribute, value, pattern in _ROWS
    )


CHINESE = Grammar(
    rules=_table(),
    unreal=re.compile(
        r"想|打算|可能|也许|大概|差点|几乎|希望|考虑|(?<!需)要(?!是)|会(?!计|议)|应该(?!是)|似乎|好像|开玩笑|准备"
    ),
    doubtful=re.compile(r"如果|要是|假如|假设|想象|的话|万一|小说里|故事里|游戏里|电影里|梦里|是否|是不是|有没有"),
    reported=re.compile(
        r"(?:他们?|她们?|有人|大家|妈妈|爸爸|朋友|同事|老板|医生|老师|姐姐|妹妹|哥哥|弟弟|老婆|老公)(?:说|告诉|觉得|认为|以为)|听说|据说"
    ),
    subordinate=re.compile(r"(?:当|等|帮|给|让|请|跟|问|替|陪|教|带|送|说|和|对|像|不是|时候|之前|前)$"),
    temporary=re.compile(
        r"这个?(?:周|星期|周末|月|几天)|暂时|今天|今晚|到(?:\d{1,2}月|下?个?(?:周|月)|月底|年底)|出差|旅游|旅行|度假|临时|借住"
        r"|(?:待|住)[一两三四五六几\d]+(?:天|周|个)"
    ),
    corrects=re.compile(r"^(?:不对|抱歉|对不起|更正|我?说错了|应该是)"),
    meant=re.compile(
        r"(?:我的意思是|我是说|应该是|更正[:：]?|我?说错了[，,]?是)(?:在)?(?P<v>[^，,。；;！!？?]{1,12}?)(?:[，,]不是.*)?[。！!]*$"
    ),
    also=re.compile(r"也|还|兼职|业余|另外"),
    no_value=re.compile(r"^(?:你|您|他|她|它|这|那|什么|谁|怎么|一起|哪|自己|没|不|家$|里|外面|了|我)"),
    article=re.compile(r"^(?:一个|一家|一名|一位)"),
    next_clause=re.compile(r"\s*[，,；;：:]\s*|(?:但是?|而且|不过|所以|因为)(?=我)"),
    asks=re.compile(
        r"^(?:请|麻烦|你?可以|能不能|你?能|你)*(?:帮我|帮忙|替我|提醒我|给我(?:写|订|找|推荐)|写|翻译|预订|订|告诉|查|推荐)"
    ),
    contrasts=(Contrast(re.compile(r"不是?(?P<verb>住在|叫|对)[^，,。]{1,10}[，,](?:而是|是)(?=(?P=verb))"), ""),),
)
