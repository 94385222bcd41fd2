from django.urls import include, path

urlpatterns = [
    path("api/", include("refunds.api.urls")),
    path("", include("review.urls")),
]

handler404 = "review.views.errors.not_found"
handler500 = "review.views.errors.server_error"
