from ninja import NinjaAPI

api = NinjaAPI(title="Aftersend", version="1")
