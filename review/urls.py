"""The console's addresses. URLs are the state: what a page shows can be copied from its address."""

from django.contrib.auth.decorators import login_not_required
from django.urls import path

from review.views import approvals, home, operation, sending, sign_in, unknown

urlpatterns = [
    path("", home.home, name="home"),
    path("sign-in", login_not_required(sign_in.SignIn.as_view()), name="sign_in"),
    path("sign-out", sign_in.SignOut.as_view(), name="sign_out"),
    path("still-here", sign_in.still_here, name="still_here"),
    path("recorded/<uuid:press>", home.recorded, name="recorded"),
    path("approvals", approvals.queue, name="approvals"),
    path("approvals/<uuid:operation_id>/approve", approvals.approve, name="approve"),
    path("approvals/<uuid:operation_id>/reject", approvals.reject, name="reject"),
    path("unknown", unknown.queue, name="unknown"),
    path("operations/<uuid:operation_id>", operation.operation, name="operation"),
    path("operations/<uuid:operation_id>/take-back", approvals.take_back, name="take_back"),
    path("sending", sending.accounts, name="sending"),
    path("sending/stop", sending.stop, name="sending_stop"),
    path("sending/start", sending.start, name="sending_start"),
    path("sending/<slug:account>/pause", sending.pause, name="sending_pause"),
    path("sending/<slug:account>/resume", sending.resume, name="sending_resume"),
]
