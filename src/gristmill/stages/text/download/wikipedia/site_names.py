"""Languages that have a Wikipedia, and what files and categories are called there, as data.

A dump itself says what its namespaces are called now. It does not have their former or alternative names, and old
articles are full of them: German `Bild`, Japanese `画像`. So these are here, for the larger Wikipedias.
"""

from gristmill.errors import ConfigError, nearest

LANGUAGES = frozenset(
    """
    aa ab ace ady af ak als alt am ami an ang ann anp ar arc ary arz as ast atj av avk awa ay az azb ba ban bar bat-
    smg bbc bcl bdr be be-tarask be-x-old bew bg bh bi bjn blk bm bn bo bpy br bs btm bug bxr ca cbk-zam cdo ce ceb
    ch cho chr chy ckb co cr crh cs csb cu cv cy da dag de dga din diq dsb dtp dty dv dz ee el eml en eo es et eu
    ext fa fat ff fi fiu-vro fj fo fon fr frp frr fur fy ga gag gan gcr gd gl glk gn gom gor got gpe gsw gu guc gur
    guw gv ha hak haw he hi hif ho hr hsb ht hu hy hyw hz ia iba id ie ig igl ii ik ilo inh io is it iu ja jam jbo
    jv ka kaa kab kaj kbd kbp kcg kg kge ki kj kk kl km kn knc ko koi kr krc ks ksh ku kus kv kw ky la lad lb lbe
    lez lfn lg li lij lld lmo ln lo lrc lt ltg lv lzh mad mai map-bms mdf mg mh mhr mi min mk ml mn mni mnw mos mr
    mrj ms mt mus mwl my myv mzn na nah nan nap nds nds-nl ne new ng nia nl nn no nov nqo nr nrm nso nup nv ny oc
    olo om or os pa pag pam pap pcd pcm pdc pfl pi pih pl pms pnb pnt ps pt pwn qu rm rmy rn ro roa-rup roa-tara rsk
    ru rue rup rw sa sah sat sc scn sco sd se sg sgs sh shi shn shy si simple sk skr sl sm smn sn so sq sr srn ss st
    stq su sv sw syl szl szy ta tay tcy tdd te tet tg th ti tig tk tl tly tn to tpi tr trv ts tt tum tw ty tyv udm
    ug uk ur uz ve vec vep vi vls vo vro wa war wo wuu xal xh xmf yi yo yue za zea zgh zh zh-classical zh-min-nan
    zh-yue zu
    """.split()
)
"""The codes of languages, as they stand in addresses and before links to other languages."""

DATABASES = {
    "be-tarask": "be-x-old",
    "gsw": "als",
    "lzh": "zh-classical",
    "nan": "zh-min-nan",
    "rup": "roa-rup",
    "sgs": "bat-smg",
    "vro": "fiu-vro",
    "yue": "zh-yue",
}
"""Languages whose dumps have an older code than their addresses."""

FILE_NAMES: dict[str, str] = {
    "ar": "ملف, صورة, وسائط, ميديا",
    "az": "Şəkil, Fayl, Mediya",
    "be": "Файл, Выява, Мультымедыя",
    "bg": "Файл, Картинка, Медия",
    "bn": "চিত্র, মিডিয়া",
    "ca": "Fitxer, Imatge, Mèdia",
    "ceb": "Payl, Imahen, Medya",
    "cs": "Soubor, Obrázok, Média",
    "cy": "Delwedd",
    "da": "Fil, Billede",
    "de": "Datei, Bild, Medium",
    "el": "Αρχείο, Εικόνα, Μέσο, Μέσον",
    "eo": "Dosiero, Aŭdvidaĵo",
    "es": "Archivo, Imagen, Medio",
    "et": "Pilt, Fail, Meedia",
    "eu": "Fitxategi, Irudi",
    "fa": "پرونده, تصویر, رسانه, مدیا",
    "fi": "Tiedosto, Kuva",
    "fr": "Fichier, Média",
    "gl": "Ficheiro, Imaxe, Arquivo, Imagem",
    "he": "קובץ, תמונה, מדיה",
    "hi": "चित्र, मीडिया",
    "hr": "Datoteka, Slika, Mediji",
    "hu": "Fájl, Kép, Média",
    "hy": "Պատկեր, Մեդիա",
    "id": "Berkas, Gambar",
    "is": "Mynd, Miðill",
    "it": "Immagine",
    "ja": "ファイル, 画像, メディア",
    "ka": "ფაილი, სურათი, მედია",
    "kk": "Сурет, Таспа",
    "ko": "파일, 그림, 미디어",
    "la": "Fasciculus, Imago",
    "lt": "Vaizdas, Medija",
    "lv": "Attēls",
    "mk": "Податотека, Слика, Медија, Медиум",
    "ml": "പ്രമാണം, ചിത്രം, മീഡിയ",
    "mr": "चित्र, मिडिया",
    "ms": "Fail, Imej",
    "nl": "Bestand, Afbeelding",
    "nn": "Fil, Bilde, Filpeikar",
    "no": "Fil, Bilde, Medium",
    "pl": "Plik, Grafika",
    "pt": "Ficheiro, Imagem, Arquivo, Multimédia",
    "ro": "Fișier, Fişier, Imagine",
    "ru": "Файл, Изображение, Медиа",
    "sh": "Datoteka, Slika, Medija, Mediji",
    "sk": "Súbor, Obrázok, Médiá",
    "sl": "Slika, Datoteka",
    "sq": "Skeda, Figura",
    "sr": "Датотека, Слика, Медиј, Медија, Datoteka, Slika, Medij, Medija",
    "sv": "Fil, Bild",
    "ta": "படிமம், ஊடகம்",
    "te": "దస్త్రం, ఫైలు, బొమ్మ, మీడియా",
    "th": "ไฟล์, ภาพ, สื่อ",
    "tr": "Dosya, Resim, Medya, Ortam",
    "uk": "Файл, Зображення, Изображение, Медіа, Медиа",
    "ur": "فائل, تصویر, ملف, میڈیا, وسیط",
    "uz": "Fayl, Tasvir, Mediya",
    "vi": "Tập tin, Hình, Phương tiện",
    "war": "Paypay, Fayl, Medya",
    "zh": "文件, 檔案, 档案, 图像, 圖像, 媒体, 媒體, 媒体文件",
    "zh-yue": "檔, 档, 檔案, 档案, 文件, 圖, 图, 圖像, 图像, 媒體, 媒体",
}

CATEGORY_NAMES: dict[str, str] = {
    "ar": "تصنيف",
    "az": "Kateqoriya",
    "be": "Катэгорыя",
    "bg": "Категория",
    "bn": "বিষয়শ্রেণী",
    "ca": "Categoria",
    "ceb": "Kategoriya",
    "cs": "Kategorie",
    "cy": "Categori",
    "da": "Kategori",
    "de": "Kategorie",
    "el": "Κατηγορία",
    "eo": "Kategorio",
    "es": "Categoría",
    "et": "Kategooria",
    "eu": "Kategoria",
    "fa": "رده",
    "fi": "Luokka",
    "fr": "Catégorie",
    "gl": "Categoría",
    "he": "קטגוריה, קט",
    "hi": "श्रेणी",
    "hr": "Kategorija",
    "hu": "Kategória",
    "hy": "Կատեգորիա",
    "id": "Kategori",
    "is": "Flokkur",
    "it": "Categoria",
    "ja": "カテゴリ",
    "ka": "კატეგორია",
    "kk": "Санат",
    "ko": "분류",
    "la": "Categoria",
    "lt": "Kategorija",
    "lv": "Kategorija",
    "mk": "Категорија",
    "ml": "വർഗ്ഗം, വിഭാഗം",
    "mr": "वर्ग",
    "ms": "Kategori",
    "nl": "Categorie",
    "nn": "Kategori",
    "no": "Kategori",
    "pl": "Kategoria",
    "pt": "Categoria",
    "ro": "Categorie",
    "ru": "Категория",
    "sh": "Kategorija",
    "sk": "Kategória",
    "sl": "Kategorija",
    "sq": "Kategoria",
    "sr": "Категорија, Kategorija",
    "sv": "Kategori",
    "ta": "பகுப்பு",
    "te": "వర్గం",
    "th": "หมวดหมู่",
    "tr": "Kategori",
    "uk": "Категорія, Категория",
    "ur": "زمرہ",
    "uz": "Turkum",
    "vi": "Thể loại",
    "war": "Kaarangay",
    "zh": "分类, 分類",
    "zh-yue": "分類, 分类, 類, 类",
}

ENGLISH_FILE_NAMES = ("File", "Image", "Media")
ENGLISH_CATEGORY_NAMES = ("Category",)


_NAMED = """arabic ar, bulgarian bg, catalan ca, chinese zh, czech cs, danish da, dutch nl, english en, finnish fi,
french fr, german de, greek el, hebrew he, hindi hi, hungarian hu, indonesian id, italian it, japanese ja, korean ko,
norwegian no, persian fa, polish pl, portuguese pt, romanian ro, russian ru, serbian sr, spanish es, swedish sv,
thai th, turkish tr, ukrainian uk, vietnamese vi"""
CODES = dict(map(str.split, _NAMED.split(",")))  # languages whose names people write instead of codes


def check_language(language: str, *, who: str) -> None:
    """Raise ConfigError if there is no Wikipedia of this language."""
    if language not in LANGUAGES:
        from difflib import get_close_matches  # only an error needs it

        meant = get_close_matches(language.lower(), CODES, n=1, cutoff=0.75)
        close = f"; did you mean {CODES[meant[0]]!r}?" if meant else nearest(language, sorted(LANGUAGES))
        raise ConfigError(f"{who}: expected the code of a language that has a Wikipedia; got {language!r}{close}")


def database(language: str) -> str:
    """Return what the dumps of a language are called: `zh_min_nanwiki`."""
    return f"{DATABASES.get(language, language).replace('-', '_')}wiki"


def file_names(language: str) -> list[str]:
    """Return what files and media are called in a Wikipedia: the English names hold everywhere."""
    return [*ENGLISH_FILE_NAMES, *_listed(FILE_NAMES.get(language, ""))]


def category_names(language: str) -> list[str]:
    """Return what categories are called."""
    return [*ENGLISH_CATEGORY_NAMES, *_listed(CATEGORY_NAMES.get(language, ""))]


def _listed(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]
