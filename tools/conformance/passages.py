"""Short passages of well-known works in the public domain: recorded results are of these very texts."""

PASSAGES = {
    "Pride and Prejudice": (
        "It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in "
        "want of a wife. However little known the feelings or views of such a man may be on his first entering a "
        "neighbourhood, this truth is so well fixed in the minds of the surrounding families, that he is "
        "considered as the rightful property of some one or other of their daughters."
    ),
    "Moby-Dick": (
        "Call me Ishmael. Some years ago, never mind how long precisely, having little or no money in my purse, "
        "and nothing particular to interest me on shore, I thought I would sail about a little and see the watery "
        "part of the world. It is a way I have of driving off the spleen, and regulating the circulation."
    ),
    "A Tale of Two Cities": (
        "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of "
        "foolishness, it was the epoch of belief, it was the epoch of incredulity, it was the season of Light, it "
        "was the season of Darkness, it was the spring of hope, it was the winter of despair."
    ),
    "Gettysburg Address": (
        "Four score and seven years ago our fathers brought forth on this continent, a new nation, conceived in "
        "Liberty, and dedicated to the proposition that all men are created equal. Now we are engaged in a great "
        "civil war, testing whether that nation, or any nation so conceived and so dedicated, can long endure."
    ),
    "Walden": (
        "I went to the woods because I wished to live deliberately, to front only the essential facts of life, "
        "and see if I could not learn what it had to teach, and not, when I came to die, discover that I had not "
        "lived. I did not wish to live what was not life, living is so dear; nor did I wish to practise "
        "resignation."
    ),
}
