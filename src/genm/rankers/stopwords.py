"""English function words, gathered here by their grammar, for the text profile `default`.

The SMART list that the paper used belongs to its collections and is read from their folder; this list is the
project's own. A word is here because of its part of speech and never because of what a collection holds: it
carries no topic of its own. Contractions are given as the pieces that splitting at the apostrophe leaves.
"""

_ARTICLES_AND_DETERMINERS = """
a an the this that these those such same other others another each every either neither both all any some no
none several few fewer fewest many much more most less least enough own certain various else
"""
_PRONOUNS = """
i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers
herself it its itself they them their theirs themselves one ones oneself who whom whose which what whoever
whatever whichever somebody someone something anybody anyone anything everybody everyone everything nobody
nothing
"""
_PREPOSITIONS = """
about above across after against along alongside amid among amongst around as at before behind below beneath
beside besides between beyond by despite down during except for from in inside into like near of off on onto out
outside over past per regarding since through throughout till to toward towards under underneath until unto up
upon versus via with within without concerning according
"""
_CONJUNCTIONS = """
and but or nor so yet if unless whether because although though while whilst whereas than then when whenever
where wherever how however why lest once
"""
_AUXILIARIES = """
am is are was were be been being do does did doing done have has had having will would shall should can could
cannot may might must ought need needs
"""
_CONTRACTION_PIECES = """
don doesn didn isn aren wasn weren hasn haven hadn won wouldn shan shouldn couldn mustn mightn needn ll ve re
"""
_ADVERBS = """
again almost already also always anyhow anyway anywhere apart away back else elsewhere especially even ever
everywhere far further furthermore hence here hereby herein indeed instead just largely later latter former
likewise mainly maybe meanwhile merely moreover mostly namely nearly never nevertheless next not now nowhere
often only otherwise perhaps possibly probably quite rather really seldom sometimes somewhat somewhere soon
still thereby therefore therein thereof thereafter there thus together too usually very well whence whereby
wherein particularly respectively relatively specifically actually certainly clearly consequently currently
hardly little long ago aside forth hereafter
"""
_COMMON_VERBS = """
appear appears became become becomes becoming came come comes coming contain containing contains follow followed
following follows gave get gets getting give given gives giving go goes going gone got hold keep keeps kept knew
know known knows let lets look looking looks made make makes making mean means obtain obtained put said saw say
saying says see seeing seem seemed seeming seems seen show showed shown shows take taken takes taking tell tells
tend tends took use used useful uses using want wants went
"""
_NUMBERS_AND_ORDER = """
zero two three four five six seven eight nine ten first second third secondly thirdly firstly last
"""
_ABBREVIATIONS = """
eg ie et al etc viz vs cf ibid
"""

ENGLISH: frozenset[str] = frozenset(
    "".join(
        (
            _ARTICLES_AND_DETERMINERS,
            _PRONOUNS,
            _PREPOSITIONS,
            _CONJUNCTIONS,
            _AUXILIARIES,
            _CONTRACTION_PIECES,
            _ADVERBS,
            _COMMON_VERBS,
            _NUMBERS_AND_ORDER,
            _ABBREVIATIONS,
        )
    ).split()
)
"""Words that the profile `default` leaves out."""
