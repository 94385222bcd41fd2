from django.urls import include, path

from reconciliation import webhooks

urlpatterns = [
    path("api/", include("refunds.api.urls")),
    path("webhooks/<str:account>", webhooks.receive, name="webhook"),
    path("", include("review.urls")),
]

handler404 = "review.views.errors.not_found"
handler500 = "review.views.errors.server_error"
