from django.urls import include, path

from refunds.api.views import api

urlpatterns = [
    path("api/v1/", api.urls),
    path("", include("review.urls")),
]
