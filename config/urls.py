from django.urls import include, path

urlpatterns = [
    path("api/", include("refunds.api.urls")),
    path("", include("review.urls")),
]
