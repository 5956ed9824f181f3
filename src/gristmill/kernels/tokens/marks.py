"""Marks that end a sentence or a line, and characters that make no word: the lists the rules of datatrove 0.10 use."""

import unicodedata

# Marks that end a sentence for the sentence splitter, in all scripts.
SENTENCE_ENDS = frozenset(
    "!.?։؟۔܀܁܂߹।॥၊။።፧፨᙮᜵᜶᠃᠉᥄᥅᪨᪩᪪᪫᭚᭛᭞᭟᰻᰼᱾᱿‼‽⁇⁈⁉⸮⸼。꓿꘎꘏꛳꛷꡶꡷꣎꣏꤯꧈꧉꩝꩞꩟꫰꫱꯫﹒﹖﹗！．？｡𐩖𐩗𑁇𑁈𑂾𑂿𑃀𑃁𑅁𑅂𑅃𑇅𑇆𑇍𑇞𑇟𑈸𑈹𑈻𑈼𑊩𑑋𑑌𑗂𑗃"
    "𑗉𑗊𑗋𑗌𑗍𑗎𑗏𑗐𑗑𑗒𑗓𑗔𑗕𑗖𑗗𑙁𑙂𑜼𑜽𑜾𑩂𑩃𑪛𑪜𑱁𑱂𖩮𖩯𖫵𖬷𖬸𖭄𛲟𝪈"
)
# Marks a line may end with: the same and some of later versions of Unicode.
LINE_ENDS = SENTENCE_ENDS | frozenset(
    "\u061d؞࠷࠹࠽࠾។៕៖៙៚\u1b7d\u1b7e\u2e53\u2e54𐽕𐽖𐽗𐽘𐽙\U00010f86\U00010f87\U00010f88\U00010f89𑥄𑥆𑻷𑻸\U00011f43\U00011f44𖺘"
)
# A token of these alone is a symbol, not a word. The full-width digit one is in the list by an oversight.
SYMBOLS = (
    LINE_ENDS
    | frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~«´»–—’“”„…∶━►、。〈〉《》「」【】！％（），．１：；？～")
    | frozenset(map(chr, (*range(9), *range(11, 32), *range(127, 160))))
)


def is_punctuation(token: str) -> bool:
    """Whether a token is of characters of Unicode's categories P alone."""
    return all(unicodedata.category(character).startswith("P") for character in token)
