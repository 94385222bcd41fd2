"""What the demo's shop sells, to whom, and the words that come with a refund."""

from __future__ import annotations

from typing import Final

# (goods, price in minor units of the currency)
GOODS: Final[dict[str, tuple[tuple[str, int], ...]]] = {
    "USD": (
        ("Bluetooth speaker", 5900),
        ("Phone case", 1900),
        ("Running vest", 4400),
        ("Yoga mat", 3500),
        ("Cast iron pan", 6800),
        ("Board game", 4200),
        ("Cotton sheets", 8900),
        ("Wall clock", 3100),
        ("Dog bed", 7400),
        ("Espresso cups", 2700),
    ),
    "EUR": (
        ("Hiking poles", 5400),
        ("Linen shirt", 6900),
        ("Salad bowl", 2400),
        ("Bike light", 3900),
        ("Picture frame", 1800),
        ("Wool socks", 1250),
        ("Garden shears", 4600),
        ("Desk mat", 2900),
    ),
    "GBP": (
        ("Umbrella", 2600),
        ("Tea caddy", 1750),
        ("Garden gloves", 1400),
        ("Rain boots", 4900),
        ("Scented candle", 2200),
    ),
    "JPY": (("Bento box", 3200), ("Chef's knife", 14800), ("Yukata", 8600), ("Teapot", 5400)),
    "KWD": (("Incense burner", 9500), ("Sandals", 14250), ("Silk scarf", 18750)),
}
BIG_GOODS: Final[dict[str, tuple[tuple[str, int], ...]]] = {
    "USD": (("Dining table", 89000), ("Espresso machine", 134000), ("Road bike", 189000)),
    "EUR": (("Sofa", 149000), ("Dishwasher", 62000), ("Wardrobe", 118000)),
    "GBP": (("Bookcase", 46000), ("Armchair", 58000)),
}
# reason code -> words that an agent or a person wrote about it
WORDS: Final[dict[str, tuple[str, ...]]] = {
    "damaged_item": (
        "Arrived with a crack along the side; photo in the ticket.",
        "The seal was broken and half of it had leaked.",
        "Works for a minute, then switches itself off.",
    ),
    "not_received": (
        "The carrier lists it as delivered, the customer has nothing.",
        "One of two parcels never came.",
    ),
    "returned_item": (
        "Came back unopened; the warehouse has it.",
        "Wrong size, returned with all labels on.",
    ),
    "duplicate_payment": ("Charged twice for one basket.",),
    "cancelled_order": ("Cancelled within the hour, before it was packed.",),
    "price_adjustment": (
        "The sale began the day after the order.",
        "A voucher was not taken at checkout.",
    ),
    "goodwill": ("Delivered nine days late.", "Third complaint about the same parcel."),
    "other": (
        "The customer paid customs duty that we had promised to carry.",
        "The gift wrapping was paid for and left out.",
        "The recycling fee was charged though the old one was not collected.",
        "The assembly was booked and nobody came.",
    ),
}
# (label, value, source): facts the shop's own systems hold; their age is the story's
FACTS: Final = (
    ("Warehouse", "return received, complete", "wms"),
    ("Warehouse", "return received, box opened", "wms"),
    ("Carrier", "delivered, signed for by a neighbour", "carrier"),
    ("Carrier", "delivered, left at the door", "carrier"),
    ("Help desk", "photo shows the damage", "helpdesk"),
    ("Shop", "sale price was 15 % lower the next day", "shop"),
)
# (code of the closed list, the lead's words)
REJECTIONS: Final = (
    ("not_owed", "Not owed: the return window closed in October."),
    ("order_wrong", "The photo shows another item than the one on this order."),
    ("proof_missing", "The carrier has a signature from the customer; ask them first."),
    ("amount_wrong", "Refund the shipping only; please propose that amount."),
)
WITHDRAWALS: Final = (
    "The customer wants a replacement instead.",
    "Proposed on the wrong order.",
    "The parcel turned up after all.",
)
