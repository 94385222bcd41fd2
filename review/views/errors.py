from django.http import HttpRequest, HttpResponse


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return HttpResponse("The form could not be verified.", status=403)
