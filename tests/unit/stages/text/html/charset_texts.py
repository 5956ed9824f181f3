"""Sentences in the languages that the charsets of older pages were made for, and pages of them in those charsets."""

from collections.abc import Iterator

SENTENCES = {
    "de": [
        "Der Müller steht früh auf, denn das Mühlrad dreht sich nur, solange der Bach genügend Wasser führt.",
        "Für das Mahlen bekommt er einen kleinen Teil des Mehls, und das ist seit über hundert Jahren so üblich.",
        "Im Frühjahr wird das große Rad geprüft, die Schäden werden ausgebessert und die Zähne der Räder geölt.",
        "Wer Brot backen möchte, braucht außer Mehl auch Salz, Wasser, Hefe und vor allem genügend Geduld.",
        "Die Straße zur Mühle führt durch ein schönes Tal, in dem im Mai die Bäume blühen.",
        "Später kamen die Bäuerinnen aus den Nachbardörfern und erzählten, was sie auf dem Markt gehört hatten.",
        "Übrigens heißt das Gasthaus am Fluss noch immer so wie vor dem großen Hochwasser.",
        "Das Gebäude gehört heute der Gemeinde, die es für Schüler und Gäste geöffnet hat.",
    ],
    "fr": [
        "Le meunier se lève très tôt, car la roue ne tourne que lorsque la rivière a assez d’eau après les pluies.",
        "Chaque année, à la fin de l’été, les paysans apportent leur blé et attendent leur tour devant le moulin.",
        "La farine était pesée, mesurée et notée dans un grand cahier que la famille a gardé jusqu’à aujourd’hui.",
        "Où que l’on soit dans la vallée, on entend le bruit régulier de l’eau qui tombe sur les pales.",
        "Le pain préparé à l’ancienne se conserve plusieurs jours, et son goût n’a rien à voir avec les autres.",
        "Les élèves de l’école voisine ont dessiné le bâtiment, ses fenêtres étroites et son toit brûlé.",
        "Il a fallu réparer la charpente, qui avait été très abîmée pendant l’hiver précédent.",
        "Une fête a lieu au mois de mai : on y mange des gâteaux, des crêpes et du fromage frais.",
    ],
    "pl": [
        "Młynarz wstaje wcześnie rano, bo koło młyńskie obraca się tylko wtedy, gdy w rzece jest dość wody.",
        "Każdego roku pod koniec lata gospodarze przywożą zboże i czekają przed młynem na swoją kolej.",
        "Mąka była ważona, mierzona i zapisywana w dużym zeszycie, który rodzina przechowuje do dziś.",
        "Jeśli ktoś chce upiec chleb, potrzebuje mąki, soli, wody, drożdży, a przede wszystkim cierpliwości.",
        "Droga do młyna prowadzi przez piękną dolinę, w której wiosną kwitną jabłonie i śliwy.",
        "Później przyszły gospodynie z sąsiednich wsi i opowiadały, co słyszały na targu.",
        "Gospoda nad rzeką wciąż nazywa się tak samo jak przed wielką powodzią.",
        "Dziś budynek należy do gminy, która otworzyła go dla uczniów i gości.",
    ],
    "cs": [
        "Mlynář vstává brzy ráno, protože mlýnské kolo se točí jen tehdy, když je v řece dost vody.",
        "Každý rok na konci léta sedláci přivážejí obilí a čekají před mlýnem, až na ně přijde řada.",
        "Mouka se vážila, měřila a zapisovala do velkého sešitu, který má rodina dodnes.",
        "Kdo chce upéct chleba, potřebuje mouku, sůl, vodu, kvasnice a především trpělivost.",
        "Cesta k mlýnu vede krásným údolím, ve kterém na jaře kvetou jabloně a švestky.",
        "Později přišly hospodyně ze sousedních vesnic a vyprávěly, co slyšely na trhu.",
        "Hospoda u řeky se pořád jmenuje stejně jako před velkou povodní.",
        "Dům dnes patří obci, která jej otevřela pro žáky a hosty.",
    ],
    "hu": [
        "A molnár korán reggel kel, mert a malomkerék csak akkor forog, ha elég víz van a folyóban.",
        "Minden évben, a nyár végén a gazdák elhozzák a gabonát, és a malom előtt várják a sorukat.",
        "A lisztet megmérték, és egy nagy füzetbe írták be, amelyet a család a mai napig őriz.",
        "Aki kenyeret akar sütni, annak lisztre, sóra, vízre, élesztőre és főleg türelemre van szüksége.",
        "A malomhoz vezető út egy gyönyörű völgyön át vezet, ahol tavasszal virágoznak az almafák.",
        "Később megérkeztek a szomszéd falvak asszonyai, és elmesélték, mit hallottak a piacon.",
        "A folyó melletti fogadót még mindig ugyanúgy hívják, mint a nagy árvíz előtt.",
        "Az épület ma a községé, amely megnyitotta a diákok és a vendégek előtt.",
    ],
    "ru": [
        "Мельник встаёт рано утром, потому что колесо вращается только тогда, когда в реке достаточно воды.",
        "Каждый год в конце лета крестьяне привозят зерно и ждут своей очереди перед мельницей.",
        "Муку взвешивали, измеряли и записывали в большую тетрадь, которую семья хранит до сих пор.",
        "Тому, кто хочет испечь хлеб, нужны мука, соль, вода, дрожжи и прежде всего терпение.",
        "Дорога к мельнице идёт через красивую долину, где весной цветут яблони и вишни.",
        "Потом пришли хозяйки из соседних деревень и рассказали, что они слышали на рынке.",
        "Трактир у реки до сих пор называется так же, как и до большого наводнения.",
        "Сегодня здание принадлежит общине, которая открыла его для школьников и гостей.",
    ],
    "el": [
        "Ο μυλωνάς ξυπνάει νωρίς το πρωί, γιατί η ρόδα γυρίζει μόνο όταν το ποτάμι έχει αρκετό νερό.",
        "Κάθε χρόνο, στο τέλος του καλοκαιριού, οι αγρότες φέρνουν το σιτάρι και περιμένουν τη σειρά τους.",
        "Το αλεύρι ζυγιζόταν, μετριόταν και γραφόταν σε ένα μεγάλο τετράδιο που η οικογένεια φυλάει ακόμα.",
        "Όποιος θέλει να ψήσει ψωμί χρειάζεται αλεύρι, αλάτι, νερό, μαγιά και κυρίως υπομονή.",
        "Ο δρόμος προς τον μύλο περνάει από μια όμορφη κοιλάδα, όπου την άνοιξη ανθίζουν οι μηλιές.",
        "Αργότερα ήρθαν οι γυναίκες από τα γειτονικά χωριά και διηγήθηκαν τι είχαν ακούσει στην αγορά.",
        "Το πανδοχείο δίπλα στο ποτάμι λέγεται ακόμα όπως και πριν από τη μεγάλη πλημμύρα.",
        "Σήμερα το κτίριο ανήκει στην κοινότητα, που το άνοιξε για τους μαθητές και τους επισκέπτες.",
    ],
    "tr": [
        "Değirmenci sabah erkenden kalkar, çünkü çark ancak ırmakta yeterince su olduğu zaman döner.",
        "Her yıl yaz sonunda çiftçiler buğdaylarını getirir ve değirmenin önünde sıralarını bekler.",
        "Un tartılır, ölçülür ve ailenin bugüne kadar sakladığı büyük bir deftere yazılırdı.",
        "Ekmek pişirmek isteyen kişinin una, tuza, suya, mayaya ve en çok da sabra ihtiyacı vardır.",
        "Değirmene giden yol, ilkbaharda elma ağaçlarının çiçek açtığı güzel bir vadiden geçer.",
        "Daha sonra komşu köylerin kadınları geldi ve pazarda duyduklarını anlattılar.",
        "Irmağın kıyısındaki hanın adı, büyük selden önceki gibi hâlâ aynıdır.",
        "Bugün bina, onu öğrencilere ve konuklara açan belediyeye aittir.",
    ],
    "ja": [
        "粉屋は朝早く起きます。川に十分な水があるときだけ、水車が回るからです。",
        "毎年夏の終わりになると、農家の人たちが小麦を運んできて、水車小屋の前で順番を待ちます。",
        "小麦粉は重さをはかられ、家族が今も大切にしている大きな帳面に書き込まれました。",
        "パンを焼きたい人には、小麦粉、塩、水、酵母、そして何よりも忍耐が必要です。",
        "水車小屋へ行く道は、春になるとりんごの花が咲く美しい谷を通っています。",
        "その後、近くの村の女性たちがやって来て、市場で聞いたことを話しました。",
        "川のそばの宿屋は、大きな洪水の前と同じ名前で今も呼ばれています。",
        "建物は現在、町のものになり、生徒や旅行者のために開かれています。",
    ],
    "zh-cn": [
        "磨坊主人每天很早就起床,因为只有河里的水足够多的时候,水车才会转动。",
        "每年夏天快要结束的时候,农民们把小麦运来,在磨坊门前排队等候。",
        "面粉要称重、测量,然后记在一个大本子上,这家人一直把它保存到今天。",
        "想要烤面包的人需要面粉、盐、水和酵母,最重要的是要有耐心。",
        "通往磨坊的路经过一个美丽的山谷,春天的时候那里的苹果树都会开花。",
        "后来邻近村庄的妇女们来了,讲述她们在市场上听到的事情。",
        "河边的旅店现在还叫做大洪水以前的那个名字。",
        "今天这座房子属于当地政府,对学生和游客开放。",
    ],
    "zh-tw": [
        "磨坊主人每天很早就起床,因為只有河裡的水足夠多的時候,水車才會轉動。",
        "每年夏天快要結束的時候,農民們把小麥運來,在磨坊門前排隊等候。",
        "麵粉要秤重、測量,然後記在一個大本子上,這家人一直把它保存到今天。",
        "想要烤麵包的人需要麵粉、鹽、水和酵母,最重要的是要有耐心。",
        "通往磨坊的路經過一個美麗的山谷,春天的時候那裡的蘋果樹都會開花。",
        "後來鄰近村莊的婦女們來了,講述她們在市場上聽到的事情。",
        "河邊的旅店現在還叫做大洪水以前的那個名字。",
        "今天這座房子屬於當地政府,對學生和遊客開放。",
    ],
    "ko": [
        "방앗간 주인은 아침 일찍 일어납니다. 강에 물이 충분히 있을 때에만 물레방아가 돌기 때문입니다.",
        "해마다 여름이 끝날 무렵이면 농부들이 밀을 가져와서 방앗간 앞에서 차례를 기다립니다.",
        "밀가루는 무게를 달고 재어서 가족이 지금까지 간직하고 있는 큰 공책에 적었습니다.",
        "빵을 굽고 싶은 사람에게는 밀가루, 소금, 물, 효모, 그리고 무엇보다도 인내심이 필요합니다.",
        "방앗간으로 가는 길은 봄이면 사과나무 꽃이 피는 아름다운 골짜기를 지나갑니다.",
        "나중에 이웃 마을의 여자들이 와서 시장에서 들은 이야기를 해 주었습니다.",
        "강가에 있는 여관은 큰 홍수가 나기 전과 같은 이름으로 아직도 불립니다.",
        "지금 이 건물은 마을의 것이며 학생들과 손님들에게 열려 있습니다.",
    ],
}
# Fifteen charsets, the languages they were used for, and the codec of Python that writes them as old programs did.
CHARSETS = {
    "windows-1252": ("cp1252", ("de", "fr")),
    "iso-8859-1": ("latin-1", ("de", "fr")),
    "iso-8859-2": ("iso8859-2", ("pl", "cs", "hu")),
    "windows-1250": ("cp1250", ("pl", "cs", "hu")),
    "windows-1251": ("cp1251", ("ru",)),
    "koi8-r": ("koi8-r", ("ru",)),
    "iso-8859-5": ("iso8859-5", ("ru",)),
    "windows-1253": ("cp1253", ("el",)),
    "windows-1254": ("cp1254", ("tr",)),
    "shift_jis": ("cp932", ("ja",)),
    "euc-jp": ("euc-jp", ("ja",)),
    "iso-2022-jp": ("iso-2022-jp", ("ja",)),
    "gb2312": ("gbk", ("zh-cn",)),
    "big5": ("cp950", ("zh-tw",)),
    "euc-kr": ("cp949", ("ko",)),
}
PAGES_OF_EACH = 40


def pages_in(charset: str, declared: str = "") -> Iterator[tuple[str, bytes]]:
    """Yield pages as text and as bytes: short ones and long ones, with more or less markup, all of them different."""
    codec, languages = CHARSETS.get(charset, (charset, ("de", "ru", "ja")))
    for number in range(PAGES_OF_EACH):
        sentences = SENTENCES[languages[number % len(languages)]]
        first, count = number % len(sentences), 3 + number % 6
        chosen = [sentences[(first + k) % len(sentences)] for k in range(count)]
        page = _page(number, chosen, declared)
        data = page.encode(codec, "xmlcharrefreplace")
        yield data.decode(codec), data


def _page(number: int, sentences: list[str], declared: str) -> str:
    meta = f'<meta http-equiv="Content-Type" content="text/html; charset={declared}">' if declared else ""
    menu = "".join(f'<li><a href="/section/{number}/{k}.html">Page {k}</a></li>' for k in range(number % 7))
    body = "".join(f"<p class='text-{k}'>{sentence}</p>\n" for k, sentence in enumerate(sentences))
    script = f"<script>var page = {{id: {number}}}; window.start(page);</script>"
    head = f"<head>{meta}<title>{sentences[0][:30]}</title><style>p {{ margin: 0 }}</style></head>"
    return f"<!DOCTYPE html>\n<html>{head}\n<body><ul>{menu}</ul>\n{body}{script}</body></html>\n"
